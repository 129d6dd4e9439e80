/** Buyers who reserve at a steady rate, whatever the answers take: latency counts from when each was due. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Gate } from '../../src/gate/gate.ts';
import { SALE } from './fill.ts';

export type Latencies = { count: number; perSecond: number; p50: number; p99: number; max: number };

const PER_SECOND = 300;
let buyers = 0;

/** Starts at once; each buyer is a new one and wins. @returns how to stop it, with what was measured in milliseconds */
export function startLoad(gate: Gate): { stop: () => Promise<Latencies> } {
  const took: number[] = [];
  const failures: unknown[] = [];
  const over = new AbortController();
  const began = performance.now();
  const running = (async () => {
    const pending = new Set<Promise<void>>();
    for (let n = 0; !over.signal.aborted; n += 1) {
      const due = began + (n * 1000) / PER_SECOND;
      const early = due - performance.now();
      if (early > 1) await sleep(early);
      const asking = { userId: `b${(buyers += 1)}`, reservationId: randomUUID(), qty: 1 };
      const asked = gate
        .reserve(SALE, asking, performance.now() + 2000)
        .then(({ outcome }) => {
          took.push(performance.now() - due);
          if (outcome !== 'ok') failures.push(outcome);
        })
        .catch((error: unknown) => failures.push(error))
        .then(() => void pending.delete(asked));
      pending.add(asked);
    }
    await Promise.all(pending);
  })();
  return {
    stop: async () => {
      over.abort();
      await running;
      if (failures.length > 0) throw new Error(`${failures.length} buyers did not win`, { cause: failures[0] });
      took.sort((a, b) => a - b);
      const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? NaN;
      return { count: took.length, perSecond: PER_SECOND, p50: at(0.5), p99: at(0.99), max: at(1) };
    },
  };
}

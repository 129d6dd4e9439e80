/**
 * What all API processes together answer per second, and how long the gate takes: from two readings of their metrics, as
 * the metrics' page shows them. Of all sales, since no metric has a sale in a label.
 */

/** Counts since the processes began. `gate`: calls of the gate that took at most so many seconds, in ascending order. */
export type Meters = { answers: Record<string, number>; latched: number; gate: [seconds: number, calls: number][] };

/** Per second, by problem code, `ok` or `dup`; `latched` are those of sold_out that a process knew by itself. */
export type Speed = {
  answers: Record<string, number>;
  latched: number;
  gateMs: { p50: number; p99: number } | null;
};

const LINE = /^(flashgate_\w+?)(?:\{(?:code|le)="([^"]*)"\})? (\S+)$/gm;

/** @param text in Prometheus' text format */
export function readMeters(text: string): Meters {
  const meters: Meters = { answers: {}, latched: 0, gate: [] };
  for (const [, name, label = '', value] of text.matchAll(LINE)) {
    if (name === 'flashgate_answers_total') meters.answers[label] = Number(value);
    if (name === 'flashgate_latched_total') meters.latched = Number(value);
    if (name === 'flashgate_gate_call_seconds_bucket')
      meters.gate.push([label === '+Inf' ? Infinity : Number(label), Number(value)]);
  }
  meters.gate.sort(([a], [b]) => a - b);
  return meters;
}

/** A process that began anew counts from 0 again: for that moment less is shown than there was, never below none. */
export function speedSince(before: Meters, now: Meters, seconds: number): Speed {
  const rate = (from: number, to: number) => Math.max(0, to - from) / seconds;
  const counted = Object.entries(now.answers).map(([code, n]) => [code, rate(before.answers[code] ?? 0, n)] as const);
  const earlier = new Map(before.gate);
  const calls = now.gate.map(([le, n]): [number, number] => [le, Math.max(0, n - (earlier.get(le) ?? 0))]);
  return {
    answers: Object.fromEntries(counted),
    latched: rate(before.latched, now.latched),
    gateMs: (calls.at(-1)?.[1] ?? 0) > 0 ? { p50: quantile(calls, 0.5), p99: quantile(calls, 0.99) } : null,
  };
}

/** In milliseconds, by the straight line between a bucket's ends; what is beyond the last one is told as that. */
function quantile(buckets: [le: number, calls: number][], q: number): number {
  const wanted = q * (buckets.at(-1)?.[1] ?? 0);
  let [from, below] = [0, 0];
  for (const [le, calls] of buckets) {
    if (calls >= wanted && calls > below) {
      return (le === Infinity ? from : from + ((le - from) * (wanted - below)) / (calls - below)) * 1000;
    }
    [from, below] = [le === Infinity ? from : le, calls];
  }
  return from * 1000;
}

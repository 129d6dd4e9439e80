/** One round against one target: a load, and what it cost whom. */
import type { Bench } from '../bench.ts';
import { watch } from './cpu.ts';
import type { Job, JobResult } from './load.ts';
import { digits } from './stats.ts';
import type { Design, Recount, Target, Told } from './targets.ts';

/** Microseconds of CPU per request. */
export type Cpu = { server: number; worker: number; redis: number; postgres: number; driver: number };
export type Round = JobResult & { rate: number; cpu: Cpu; recount: Recount | undefined };

export type Press = Pick<Job, 'connections' | 'requests'> & { firstUser?: number; rate?: number };

/** Users of different rounds are different people. */
let nextUser = 1;

/** Drives a load at a sale of the target and measures it. */
export async function measure(
  { load, pids }: Pick<Bench, 'load' | 'pids'>,
  target: Target,
  saleId: string,
  press: Press,
): Promise<Round> {
  const firstUser = press.firstUser ?? nextUser;
  nextUser = Math.max(nextUser, firstUser + press.requests);
  const spent = watch({ server: target.pid, ...pids });
  const { port, token } = target;
  const result = await load.run({ port, token, path: `/sales/${saleId}/reserve`, ...press, firstUser });
  const ms = spent();
  const answered = press.requests - result.unanswered;
  const each = (milliseconds: number) => (milliseconds * 1000) / Math.max(1, answered);
  return {
    ...result,
    rate: answered / result.seconds,
    cpu: {
      server: each(ms.server),
      worker: each(ms.worker),
      redis: each(ms.redis),
      postgres: each(ms.postgres),
      driver: each(result.driverCpuMs),
    },
    recount: undefined,
  };
}

/** A whole rush: a new sale, the load, and the recount of what was sold. @throws {Error} when it oversold */
export async function rush(bench: Bench, target: Target, units: number, press: Press): Promise<Round> {
  const saleId = await target.newSale(units);
  const round = await measure(bench, target, saleId, press);
  const recount = await target.recount(saleId, told(round));
  if (recount && recount.sold > recount.total) {
    throw new Error(
      `${target.name} sold ${recount.sold} of ${recount.total} units: a design that oversells is no peer`,
    );
  }
  return { ...round, recount };
}

/** Few requests to a sale of its own, so that code is compiled and connections are open before anything is counted. */
export async function warmUp(bench: Bench, target: Target, connections: number, requests: number): Promise<void> {
  await rush(bench, target, 10, { connections, requests });
}

/** What the buyers of a round know of having won. */
export function told({ statuses, unanswered }: JobResult): Told {
  const errors = Object.entries(statuses).filter(([status]) => status === '0' || Number(status) >= 500);
  return { won: statuses[202] ?? 0, untold: errors.reduce((sum, [, count]) => sum + count, unanswered) };
}

/** Rushes of a warm-up, and for how long there are more of them: a server that compiles still is not what is measured. */
const WARM = { connections: 200, requests: 3000, ms: 2000 };

/**
 * Starts a design's server for one measurement, warms it up, ends it: no round is disturbed by servers that only wait,
 * and the database's connections are all one design's.
 */
export async function freshly<T>(bench: Bench, design: Design, work: (target: Target) => Promise<T>): Promise<T> {
  const target = await design.start(bench);
  try {
    const { quick } = bench.sizes;
    const began = performance.now();
    do await warmUp(bench, target, WARM.connections, quick ? WARM.connections : WARM.requests);
    while (!quick && performance.now() - began < WARM.ms);
    return await work(target);
  } finally {
    await target.stop();
  }
}

/** A round in one line, for the raw output. */
export function line(name: string, round: Round): string {
  const { cpu, latencyMs, recount } = round;
  const counted = Object.entries(round.statuses).map(([status, count]) => `${status}: ${count}`);
  return [
    name.padEnd(26),
    `${digits(round.rate)}/s`,
    `CPU µs/request server ${digits(cpu.server)} worker ${digits(cpu.worker)} redis ${digits(cpu.redis)} postgres ${digits(cpu.postgres)} driver ${digits(cpu.driver)}`,
    `ms p50 ${digits(latencyMs.p50)} p99 ${digits(latencyMs.p99)} max ${digits(latencyMs.max)}`,
    counted.join(' '),
    ...(Object.keys(round.refusals).length > 0 ? [JSON.stringify(round.refusals)] : []),
    ...(round.unanswered > 0 ? [`unanswered ${round.unanswered}`] : []),
    ...(recount ? [`sold ${recount.sold} of ${recount.total}`] : []),
  ].join('  ');
}

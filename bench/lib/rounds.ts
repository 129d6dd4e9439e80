/** One round against one target: a load, and what it cost whom. */
import type { Bench } from '../bench.ts';
import { watch } from './cpu.ts';
import type { Job, JobResult, Load } from './load.ts';
import { digits } from './stats.ts';
import type { Design, Recount, Target, Told } from './targets.ts';

/** Microseconds of CPU per request that was answered as expected; `worker` is 0 for a design that has none. */
export type Cpu = { server: number; worker: number; redis: number; postgres: number; driver: number };
/** `rate`: such answers per second. */
export type Round = JobResult & { rate: number; cpu: Cpu; recount: Recount | undefined };

/** What a round needs of the bench. */
export type Measuring = { load: Pick<Load, 'run'>; pids: Bench['pids'] };

/** `rate`: presses per second of an open loop. Without `firstUser` the buyers are new ones. */
export type Press = Pick<Job, 'connections' | 'requests'> & { firstUser?: number; rate?: number };

/** What buyers may be told in a round: HTTP statuses, and the code that a 409 must have. */
export type Expected = { statuses: readonly number[]; conflict: string };
/** Won, holds already, or sold out. */
const USUAL: Expected = { statuses: [200, 202, 409], conflict: 'sold_out' };

/** Users of different rounds are different people. */
let nextUser = 1;

/**
 * Drives a load at a sale of the target and measures it. Errors (500 and above) and lost connections are results too, and
 * count as nothing done: they make each request dearer and the rate lower.
 * @throws {Error} when buyers were told something else than expected: "no" to a stranger or in a sale that is over is
 *   cheap, and would win
 */
export async function measure(
  { load, pids }: Measuring,
  target: Target,
  saleId: string,
  press: Press,
  expected: Expected = USUAL,
): Promise<Round> {
  const firstUser = press.firstUser ?? nextUser;
  nextUser = Math.max(nextUser, firstUser + press.requests);
  const spent = watch({ server: target.pid, ...pids });
  const { port, token } = target;
  const result = await load.run({ port, token, path: `/sales/${saleId}/reserve`, ...press, firstUser });
  const ms = spent();
  expect(target.name, result, expected);
  const answered = press.requests - failures(result);
  const each = (milliseconds: number) => (milliseconds * 1000) / Math.max(1, answered);
  return {
    ...result,
    rate: answered / result.seconds,
    cpu: {
      server: each(ms.server),
      worker: target.hasWorker ? each(ms.worker) : 0,
      redis: each(ms.redis),
      postgres: each(ms.postgres),
      driver: each(result.driverCpuMs),
    },
    recount: undefined,
  };
}

/** @throws {Error} naming what buyers were told that they should not have been */
function expect(name: string, { statuses, conflicts, refusals }: JobResult, expected: Expected): void {
  const wrong = Object.keys(statuses).filter(
    (status) => !isFailure(status) && !expected.statuses.includes(Number(status)),
  );
  const otherwise = Object.keys(conflicts).filter((code) => code !== expected.conflict);
  if (wrong.length + otherwise.length === 0) return;
  throw new Error(
    `${name}: expected ${expected.statuses.join(', ')} (409 ${expected.conflict}), but buyers were told ${JSON.stringify(statuses)}, for the reasons ${JSON.stringify({ ...refusals, ...conflicts })}`,
  );
}

const isFailure = (status: string) => status === '0' || Number(status) >= 500;

/** Presses without an answer, or with one that is an error: these buyers do not know whether they won. */
function failures({ statuses, unanswered }: JobResult): number {
  const failed = Object.entries(statuses).filter(([status]) => isFailure(status));
  return failed.reduce((sum, [, count]) => sum + count, unanswered);
}

/** A whole rush: a new sale, the load, and the recount of what was sold. @throws {Error} when it oversold, or the counts disagree */
export async function rush(bench: Measuring, target: Target, units: number, press: Press): Promise<Round> {
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

/** A sale of its own, so that what wins and refusals need is compiled and connected before anything is counted. */
export async function warmUp(bench: Measuring, target: Target, connections: number, requests: number): Promise<void> {
  await rush(bench, target, WARM.units, { connections, requests });
}

/** What the buyers of a round know of having won. */
export function told(result: JobResult): Told {
  return { won: result.statuses[202] ?? 0, untold: failures(result) };
}

/** Rushes of a warm-up, and for how long there are more of them: a server that compiles still is not what is measured. */
const WARM = { connections: 200, requests: 3000, units: 100, ms: 2000 };

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
    ...(round.lost === undefined ? [] : [`first connection lost: ${round.lost}`]),
    ...(round.unanswered > 0 ? [`unanswered ${round.unanswered}`] : []),
    ...(recount ? [`sold ${recount.sold} of ${recount.total}`] : []),
  ].join('  ');
}

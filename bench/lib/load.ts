/** The bench's side of the load driver (driver.ts): jobs go over, results come back. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { ask, endChild, startChild } from './child.ts';

/** One load: who presses where, how many, how fast. */
export type Job = {
  port: number;
  path: string;
  /** Sent as a bearer token; '' sends none. */
  token: string;
  connections: number;
  /** Presses in all, one per buyer, by buyers numbered from `firstUser` on. */
  requests: number;
  firstUser: number;
  /** Presses per second; undefined: as fast as the connections are free. */
  rate?: number;
};

/** What came of it. Latencies are of all that were answered, errors too. */
export type JobResult = {
  seconds: number;
  /** Answers by HTTP status; 0 is a connection that was lost. */
  statuses: Record<number, number>;
  /** Answers of 400 and above but 409 by their problem's code. */
  refusals: Record<string, number>;
  /** The same for 409, of which only a sample is read: one in 64. */
  conflicts: Record<string, number>;
  /** Why the first connection was lost, or could not be opened again. */
  lost?: string;
  /** Presses that got no answer within the driver's patience. */
  unanswered: number;
  latencyMs: { p50: number; p99: number; max: number };
  driverCpuMs: number;
};

/** The process that presses. */
export class Load {
  #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(): Promise<Load> {
    return new Load((await startChild(join(import.meta.dirname, 'driver.ts'))).child);
  }

  /** @throws {Error} when the connections cannot be opened */
  async run(job: Job): Promise<JobResult> {
    const reply = (await ask(this.#child, job)) as { result: JobResult } | { error: string };
    if ('error' in reply) throw new Error(`the load could not be driven: ${reply.error}`);
    return reply.result;
  }

  /** Closes its connections: a server that is asked to end would wait for those that it has not heard from yet. */
  async release(): Promise<void> {
    await ask(this.#child, { release: true });
  }

  /** A driver without anything left from the jobs before. */
  async renewed(): Promise<Load> {
    await this.stop();
    return Load.start();
  }

  /** Ends the process. */
  stop(): Promise<void> {
    return endChild(this.#child);
  }
}

/** The bench's side of the listeners (listening.ts). */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { ask, endChild, startChild } from './child.ts';

/** How many connections to open to an event stream. */
export type ListenJob = { port: number; path: string; listeners: number };
/** When events were heard since the last time that somebody asked, in epoch milliseconds; and connections lost so far. */
export type Listened = { heardAt: number[]; lost: number };

/** The process that listens. */
export class Listeners {
  #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(): Promise<Listeners> {
    return new Listeners((await startChild(join(import.meta.dirname, 'listening.ts'))).child);
  }

  /** Resolves when each of them has heard the first event. @throws {Error} when the connections cannot be opened */
  async listen(job: ListenJob): Promise<void> {
    const reply = (await ask(this.#child, job)) as { listening: true } | { error: string };
    if ('error' in reply) throw new Error(`the listeners could not listen: ${reply.error}`);
  }

  /** What was heard since the last time. */
  async take(): Promise<Listened> {
    return (await ask(this.#child, { take: true })) as Listened;
  }

  /** Closes the connections. */
  async leave(): Promise<void> {
    await ask(this.#child, { leave: true });
  }

  /** Ends the process. */
  stop(): Promise<void> {
    return endChild(this.#child);
  }
}

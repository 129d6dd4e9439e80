/**
 * One process of the product: started, killed, frozen, and started again when it ends by itself, as whoever runs it in
 * earnest would do.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN_PART, RUNTIME } from './places.ts';
import type { MemberName } from './script.ts';
import { spawnDetached } from '../scripts/lib/processes.js';

const COMMAND = { api: 'serve', worker: 'work', keeper: 'keep' } as const;
/** Pause before a process that ended by itself is started again. */
const AGAIN_MS = 400;
/** How a process says why it cannot start, as it may while a store is away. One that breaks off says no such thing. */
const CANNOT_START = 'flashgate: ';
/** For a clean end, before SIGKILL: a little more than the product allows itself. */
const PATIENCE_MS = 8000;

export type MemberOptions = {
  name: MemberName;
  port: number;
  product: string;
  logFile: string;
  env: Record<string, string>;
  guard: (pid: number, marker: string) => void;
};

/** An end that nobody asked for. `started`: it is not a start that failed and said why. */
export type OwnEnd = { how: string; upMs: number; started: boolean };

export class Member {
  readonly name: MemberName;
  readonly port: number;
  /** Ends that no fault asked for. */
  readonly ownEnds: OwnEnd[] = [];
  #options: MemberOptions;
  #child: ChildProcess | undefined;
  #gone: Promise<void> = Promise.resolve();
  #wanted = false;

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.name;
    this.port = options.port;
  }

  start(): void {
    this.#wanted = true;
    const { product, logFile, env, guard } = this.#options;
    const main = join(product, MAIN_PART);
    const log = openSync(logFile, 'a');
    const begun = { at: performance.now(), logged: statSync(logFile).size };
    const role = this.name.split('-')[0] as keyof typeof COMMAND;
    const child = spawnDetached(RUNTIME, [main, COMMAND[role]], {
      ...{ cwd: product, env, stdio: ['ignore', log, log] },
      onParentDeath: 'SIGKILL', // the one signal that ends a frozen process
    });
    closeSync(log);
    this.#child = child;
    if (child.pid !== undefined) guard(child.pid, main);
    this.#gone = new Promise((resolve) => {
      child.once('error', (error) => this.#ended(child, error.message, begun, resolve));
      child.once('exit', (code, signal) => this.#ended(child, signal ?? `exit code ${code}`, begun, resolve));
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Ends it by this signal and waits; by SIGKILL when that was not enough. It stays down until `start`. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#wanted = false;
    this.signal(signal);
    const late = new AbortController();
    const patience = sleep(PATIENCE_MS, undefined, { signal: late.signal }).then(
      () => this.signal('SIGKILL'),
      () => undefined, // it ended in time
    );
    await this.#gone;
    late.abort();
    await patience;
  }

  #ended(child: ChildProcess, how: string, begun: { at: number; logged: number }, resolve: () => void): void {
    resolve();
    if (!this.#wanted || child !== this.#child) return;
    const said = readFileSync(this.#options.logFile).subarray(begun.logged).toString().split('\n');
    const started = !said.some((line) => line.startsWith(CANNOT_START));
    this.ownEnds.push({ how, upMs: performance.now() - begun.at, started });
    setTimeout(() => {
      if (this.#wanted && child === this.#child) this.start();
    }, AGAIN_MS);
  }
}

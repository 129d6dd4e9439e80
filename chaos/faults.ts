/** Makes the faults of the script happen, and notes when each began and ended. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Swallowed } from './proxy.ts';
import type { Fault, MemberName, StoreName } from './script.ts';
import type { System } from './system.ts';

/** Times in epoch milliseconds. */
export type Struck = Fault & {
  startedAt: number;
  endedAt: number;
  /** For a gate that forgot: when, and since when it knew nothing any more of what it had promised. */
  forgot?: { at: number; since: number };
};

export class Faults {
  readonly struck: Struck[] = [];
  #system: System;
  #ending: AbortSignal;
  /** What strikes one thing does so one after the other, however long the one before took. */
  #last = new Map<string, Promise<void>>();

  constructor(system: System, ending: AbortSignal) {
    this.#system = system;
    this.#ending = ending;
  }

  /** Carries the script out from now on. Resolves when the last fault is over and everything is there again. */
  async run(script: Fault[]): Promise<void> {
    const start = performance.now();
    const all: Promise<void>[] = [];
    for (const fault of script) {
      await this.#wait(start + fault.atMs - performance.now());
      if (this.#ending.aborted) break;
      const before = this.#last.get(fault.target) ?? Promise.resolve();
      const strike = before.then(() => (this.#ending.aborted ? undefined : this.#strike(fault)));
      this.#last.set(fault.target, strike);
      all.push(strike);
    }
    await Promise.all(all);
  }

  async #strike(fault: Fault): Promise<void> {
    const struck: Struck = { ...fault, startedAt: Date.now(), endedAt: Infinity };
    this.struck.push(struck);
    await this.#act(struck);
    struck.endedAt = Date.now();
  }

  /** Less when the run is to end. */
  async #wait(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#ending }).catch(() => undefined); // rejects only then
  }

  async #act(fault: Struck): Promise<void> {
    const [what = ''] = fault.kind.split('-');
    switch (what) {
      case 'kill':
      case 'restart':
        return this.#down(fault);
      case 'freeze':
        return this.#frozen(fault, this.#system.member(fault.target as MemberName));
      case 'cut':
      case 'slow':
        return this.#way(fault);
      case 'provider':
        return this.#provider(fault);
      default:
        return this.#server(fault);
    }
  }

  async #down({ target, how, forMs }: Fault): Promise<void> {
    const member = this.#system.member(target as MemberName);
    await member.end(how as NodeJS.Signals);
    await this.#wait(forMs);
    if (!this.#ending.aborted) member.start();
  }

  async #frozen({ forMs }: Fault, thing: { signal: (signal: NodeJS.Signals) => void }): Promise<void> {
    thing.signal('SIGSTOP');
    await this.#wait(forMs);
    thing.signal('SIGCONT');
  }

  async #way({ target, kind, how, forMs }: Fault): Promise<void> {
    const way = this.#system.way(target);
    if (kind.startsWith('cut')) way.cut(how as Swallowed);
    else way.slow(parseInt(how));
    await this.#wait(forMs);
    way.heal();
    way.slow(0);
  }

  async #provider({ forMs }: Fault): Promise<void> {
    await this.#tellProvider({ refunds: { status: 500, made: true, times: 1000 } });
    await this.#wait(forMs);
    await this.#tellProvider({});
  }

  async #tellProvider(faults: object): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    const url = new URL('/faults', this.#system.provider.url);
    const { status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(faults) });
    if (status !== 204) throw new Error(`the stand-in provider answered ${status} to POST /faults`);
  }

  async #server(fault: Struck): Promise<void> {
    const system = this.#system;
    const { kind, target, how, forMs } = fault;
    if (kind === 'redis-older') return this.#older(fault);
    if (kind === 'redis-empty') return this.#empty(fault);
    const store = target as StoreName;
    if (how === 'SIGSTOP') return this.#frozen(fault, { signal: (signal) => system[store].kill(signal) });
    await system.killServer(store, how as NodeJS.Signals);
    await this.#wait(forMs);
    if (store === 'redis') return system.restartRedis();
    if (store === 'queue') return system.restartQueue();
    return system.postgres.restart();
  }

  /** A copy of Redis' log of writes, taken while it works, is what it comes back with. */
  async #older(fault: Struck): Promise<void> {
    const { redisFiles } = this.#system;
    const copy = join(this.#system.folder, 'redis-older');
    const olderMs = parseInt(fault.how);
    const since = Date.now();
    rmSync(copy, { recursive: true, force: true });
    cpSync(redisFiles, copy, { recursive: true });
    await this.#wait(olderMs);
    await this.#system.killServer('redis', 'SIGKILL');
    fault.forgot = { at: Date.now(), since };
    rmSync(redisFiles, { recursive: true });
    cpSync(copy, redisFiles, { recursive: true });
    await this.#wait(fault.forMs - olderMs);
    await this.#system.restartRedis();
  }

  async #empty(fault: Struck): Promise<void> {
    if (fault.how === 'FLUSHALL') {
      const client = new Redis(this.#system.redis.url, { maxRetriesPerRequest: 3 });
      await client.flushall().finally(() => client.disconnect());
      fault.forgot = { at: Date.now(), since: -Infinity };
      return;
    }
    await this.#system.killServer('redis', 'SIGKILL');
    fault.forgot = { at: Date.now(), since: -Infinity };
    rmSync(this.#system.redisFiles, { recursive: true });
    await this.#wait(fault.forMs);
    await this.#system.restartRedis();
  }
}

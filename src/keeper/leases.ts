/**
 * The shards that this keeper looks after: claimed in Redis, fenced by a token of the ledger, confirmed by a renewal.
 *
 * A lease alone does not exclude a second owner (a process may freeze and wake up later); it only shares the work. What
 * excludes is the token: every write of an older one is refused by ledger and gate. The lease is let go at once when a
 * renewal answers that it is gone, when two renewals in a row fail, or when two thirds of its time have passed since the
 * last good one.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { StaleToken } from '../domain/outcomes.ts';
import type { LeaseStore } from '../gate/lease-store.ts';
import type { Pool } from '../ledger/db.ts';
import { drawToken } from '../ledger/fences.ts';
import { asLabel, leasesLost } from '../meter.ts';
import type { Log } from '../operations/stores.ts';

type Lease = { token: number; goodUntil: number; failures: number };
/** How a renewal can be the end of a lease. */
type End = 'gone in Redis' | 'two renewals in a row failed';

export type LeaseOptions = { ttlMs: number };

export class Leases {
  /** Tells people who has a lease, and is unlike any other. */
  readonly nonce = `${hostname()}:${process.pid}:${randomUUID()}`;
  #held = new Map<number, Lease>();
  #store: LeaseStore;
  #pool: Pool;
  #log: Log;
  #ttlMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: LeaseStore, pool: Pool, log: Log, { ttlMs }: LeaseOptions) {
    this.#store = store;
    this.#pool = pool;
    this.#log = log;
    this.#ttlMs = ttlMs;
  }

  /** Renews every third of the time to live from here on. */
  start(): void {
    this.#timer = setInterval(() => void this.renew(), this.#ttlMs / 3);
  }

  /**
   * Claims what is free of the wanted shards, up to this keeper's share of them, and gives back what is beyond it.
   * @returns the shards it holds now
   * @throws {GateUnavailable | LedgerUnavailable}
   */
  async claim(wanted: Set<number>): Promise<number[]> {
    const keepers = await this.#store.join(this.nonce, this.#ttlMs);
    const share = Math.ceil(wanted.size / Math.max(1, keepers));
    for (const shard of this.shards()) {
      if (!wanted.has(shard) || this.#held.size > share) await this.drop(shard);
    }
    for (const shard of shuffled([...wanted])) {
      if (this.#held.size >= share) break;
      if (!this.#held.has(shard)) await this.#take(shard);
    }
    return this.shards();
  }

  /** Claims one shard, for a command that does one thing. @returns who has it, when it is somebody else */
  async claimOne(shard: number): Promise<string | undefined> {
    if (await this.#take(shard)) return undefined;
    return (await this.#store.owner(shard)) ?? 'a keeper that has just let it go';
  }

  async #take(shard: number): Promise<boolean> {
    // A lease that was let go may still be this keeper's own in Redis: taken up again, with a new token.
    const free = await this.#store.claim(shard, this.nonce, this.#ttlMs);
    if (!free && !(await this.#store.renew(shard, this.nonce, this.#ttlMs))) return false;
    const token = await drawToken(this.#pool, shard);
    const askedAt = performance.now();
    if (!(await this.#store.renew(shard, this.nonce, this.#ttlMs))) return false; // it took too long
    this.#held.set(shard, { token, goodUntil: askedAt + (this.#ttlMs * 2) / 3, failures: 0 });
    return true;
  }

  shards(): number[] {
    return [...this.#held.keys()];
  }

  /** The token to work with. @throws {StaleToken} when the lease is not held for sure any more */
  token(shard: number): string {
    const lease = this.#held.get(shard);
    if (!lease) throw new StaleToken(`shard ${shard} is not held`);
    if (performance.now() >= lease.goodUntil) {
      this.#letGoOverdue();
      throw new StaleToken(`shard ${shard}: the lease was not renewed in time`);
    }
    return String(lease.token);
  }

  /** Forgets a lease that is somebody else's by now. */
  letGo(shard: number, reason: string): void {
    if (this.#held.delete(shard)) this.#tell([shard], reason, 'refused_token');
  }

  /** Whoever froze loses all its leases at once, and says so once. */
  #tell(shards: number[], reason: string, why = asLabel(reason)): void {
    leasesLost.inc({ why }, shards.length);
    const [shard] = shards;
    if (shards.length === 1) this.#log.warn({ shard, reason }, 'a lease is let go');
    else if (shards.length > 1) this.#log.warn({ shards, reason }, 'leases are let go');
  }

  #letGoOverdue(): void {
    const now = performance.now();
    const overdue = [...this.#held].filter(([, { goodUntil }]) => now >= goodUntil).map(([shard]) => shard);
    for (const shard of overdue) this.#held.delete(shard);
    this.#tell(overdue, 'not renewed in time');
  }

  /** Gives a lease back, so that another keeper need not wait for its end. */
  async drop(shard: number): Promise<void> {
    this.#held.delete(shard);
    await this.#store.drop(shard, this.nonce).catch((error: unknown) => {
      this.#log.warn({ err: error, shard }, 'a lease could not be given back: it ends by itself');
    });
  }

  /** One renewal of all. Public for tests; the timer does it. */
  async renew(): Promise<void> {
    this.#letGoOverdue();
    const results = await Promise.all(this.shards().map((shard) => this.#renewOne(shard)));
    const failed = results.flatMap(({ shard, error }) => (error === undefined ? [] : [{ shard, error }]));
    if (failed.length > 0) {
      const shards = failed.map(({ shard }) => shard);
      this.#log.warn({ err: failed[0]?.error, shards }, 'leases could not be renewed');
    }
    for (const end of ['gone in Redis', 'two renewals in a row failed'] as const) {
      this.#tell(
        results.filter((result) => result.end === end).map(({ shard }) => shard),
        end,
      );
    }
  }

  /** What is lost is let go at once; it is told with the others. */
  async #renewOne(shard: number): Promise<{ shard: number; end?: End; error?: unknown }> {
    const askedAt = performance.now();
    const lease = this.#held.get(shard);
    const lose = (end: End) => {
      // By now it may have been taken up again, with another token.
      if (this.#held.get(shard) === lease) this.#held.delete(shard);
      return { shard, end };
    };
    if (!lease) return { shard };
    try {
      if (!(await this.#store.renew(shard, this.nonce, this.#ttlMs))) return lose('gone in Redis');
      Object.assign(lease, { goodUntil: askedAt + (this.#ttlMs * 2) / 3, failures: 0 });
      return { shard };
    } catch (error) {
      lease.failures += 1;
      return lease.failures < 2 ? { shard, error } : { ...lose('two renewals in a row failed'), error };
    }
  }

  /** Gives everything back. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.shards().map((shard) => this.drop(shard)));
    await this.#store.leave(this.nonce).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'Redis could not be told that this keeper leaves: it notices by itself');
    });
  }
}

/** Fisher and Yates: keepers that start together do not all try the same shard first. */
function shuffled<T>(items: T[]): T[] {
  for (let n = items.length - 1; n > 0; n -= 1) {
    const other = Math.floor(Math.random() * (n + 1));
    [items[n], items[other]] = [items[other] as T, items[n] as T];
  }
  return items;
}

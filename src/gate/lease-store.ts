/** Leases in Redis: who looks after which shard, for now. They share the work; what excludes is the fence (ledger). */
import { z } from 'zod';
import type { Client } from './client.ts';
import { script } from './scripts.ts';
import { within } from './within.ts';

const KEEPERS = 'lease:keepers';
const leaseKey = (shard: number) => `lease:shard:${shard}`;
const Count = z.number();

export class LeaseStore {
  #redis: Client;
  #timeoutMs: number;

  constructor(redis: Client, timeoutMs: number) {
    this.#redis = redis;
    this.#timeoutMs = timeoutMs;
  }

  /** @returns whether the lease was free and is now this owner's */
  async claim(shard: number, nonce: string, ttlMs: number): Promise<boolean> {
    const reply = this.#redis.set(leaseKey(shard), nonce, 'PX', ttlMs, 'NX');
    return (await within(this.#timeoutMs, 'claim', reply)) === 'OK';
  }

  /** @returns whether the lease is still this owner's, and prolonged */
  async renew(shard: number, nonce: string, ttlMs: number): Promise<boolean> {
    return (await this.#run('renew', leaseKey(shard), nonce, ttlMs)) === 1;
  }

  async drop(shard: number, nonce: string): Promise<void> {
    await this.#run('drop', leaseKey(shard), nonce);
  }

  /** Says that this keeper is alive. @returns how many are */
  join(nonce: string, ttlMs: number): Promise<number> {
    return this.#run('join', KEEPERS, nonce, ttlMs);
  }

  async leave(nonce: string): Promise<void> {
    await this.#run('join', KEEPERS, nonce, 0);
  }

  /** @returns the nonce of who has the lease, if anybody */
  async owner(shard: number): Promise<string | undefined> {
    return (await within(this.#timeoutMs, 'owner', this.#redis.get(leaseKey(shard)))) ?? undefined;
  }

  async #run(name: string, key: string, ...args: (string | number)[]): Promise<number> {
    return Count.parse(await within(this.#timeoutMs, name, script(name).run(this.#redis, [key], args)));
  }
}

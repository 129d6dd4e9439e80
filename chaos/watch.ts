/**
 * Looks at both stores several times a second while everything else goes on: for what must hold at every moment, and
 * would be repaired, and so hidden, by the time the run is over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { SALES } from './plan.ts';

const EVERY_MS = 120;
/** A mark may become visible this much later than the time that it carries: its transaction took that long. */
const LATE_MARK_MS = 15_000;

/** Time in epoch milliseconds. */
export type Sighting = { at: number; what: string };

export class Watch {
  looks = 0;
  /** Looks that a store did not answer: it was down at that moment. */
  missed = 0;
  readonly notConserved: Sighting[] = [];
  readonly cameBack: Sighting[] = [];
  #redis: Redis;
  #pool: pg.Pool;
  #givenBack = new Set<string>();
  #seenTo = new Date(0);
  #ending = new AbortController();
  #running: Promise<void>;

  /** Addresses of the servers themselves: no fault of the script lies in between. */
  constructor(redisUrl: string, databaseUrl: string) {
    this.#redis = new Redis(redisUrl, { enableOfflineQueue: false, retryStrategy: () => 100, commandTimeout: 1000 });
    this.#redis.on('error', () => undefined); // each look that it costs is counted
    this.#pool = new pg.Pool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 1000 });
    this.#pool.on('error', () => undefined); // the same
    this.#running = this.#run();
  }

  /** Repeatable. */
  async stop(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort();
    await this.#running;
    this.#redis.disconnect();
    await this.#pool.end();
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        await this.#look();
        this.looks += 1;
      } catch {
        this.missed += 1;
      }
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined); // rejects only at the end
    }
  }

  /** The ledger first: what it says was given back must not be at the gate after that. */
  async #look(): Promise<void> {
    const { rows } = await this.#pool.query<{ id: string; at: Date }>(
      `select reservation_id as id, gate_released_at as at from sale_orders where gate_released_at >= $1`,
      [new Date(this.#seenTo.getTime() - LATE_MARK_MS)],
    );
    for (const { id, at } of rows) {
      this.#givenBack.add(id);
      if (at > this.#seenTo) this.#seenTo = at;
    }
    for (const { saleId } of SALES) await this.#lookAtGate(saleId);
  }

  async #lookAtGate(saleId: string): Promise<void> {
    const key = (part: string) => `{sale:${saleId}}:${part}`;
    const replies = await this.#redis.multi().get(key('stock')).hgetall(key('sale')).hvals(key('holds')).exec();
    const [stock, sale, holds] = (replies ?? []).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    }) as [string | null, Record<string, string>, string[]];
    const at = Date.now();
    for (const hold of holds) {
      const id = hold.slice(0, hold.indexOf('|'));
      if (this.#givenBack.has(id))
        this.cameBack.push({ at, what: `${saleId}: ${id} was given back and is held again` });
    }
    if (stock === null || sale.state === undefined || sale.state === 'loading') return;
    const { held, forfeited, total } = sale;
    if (Number(stock) + Number(held) + Number(forfeited) === Number(total)) return;
    this.notConserved.push({
      at,
      what: `${saleId}: stock ${stock} + held ${held} + forfeited ${forfeited}, total ${total}`,
    });
  }
}

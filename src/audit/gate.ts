/**
 * Reads the gate: Redis, which cannot be read at one instant without stopping everybody else. So a sale's figures are
 * read in one transaction before and after its holds, which are read in pages; figures that moved tell that the holds
 * may have moved too.
 *
 * Memory: all holds of one sale at a time, some 300 bytes each.
 */
import type { ChainableCommander, Cluster, Redis } from 'ioredis';
import { addressesOf, clientOf, type RedisPlace, serversOf, whyAway } from './redis.ts';
import { placeOf, StoreAway, within } from './stores.ts';

/** Entries per call: a call of this size keeps buyers waiting for a millisecond or two. */
const PAGE = 500;
/** How often a sale is read again to find it at rest. More would not help against a sale that is being sold. */
const READS = 3;

const KEYS = ['stock', 'buyers', 'holds', 'unqueued', 'sale'] as const;
const TYPES = ['string', 'set', 'hash', 'zset', 'hash'];
const FIELDS = [
  'state',
  'held',
  'forfeited',
  'total',
  'settings',
  'startsAt',
  'endsAt',
  'maxPerReservation',
  'holdSeconds',
  'amount',
  'currency',
  'generation',
  'version',
  'token',
] as const;
type Field = (typeof FIELDS)[number];

/** A sale's figures at the gate at one instant, as Redis has them: null is not there. */
export type GateHead = {
  presence: 'loaded' | 'loading' | 'not_loaded';
  /** Redis' clock, epoch milliseconds. */
  now: number;
  stock: string | null;
  fields: Record<Field, string | null>;
  /** Keys of the sale that are there, and those of them that would expire. */
  keys: string[];
  expiring: string[];
};

/** Everything of one sale. `moved`: holds came or went while it was read. */
export type GateRead = {
  head: GateHead;
  moved: boolean;
  /** Buyer to hold, as the gate has it. */
  holds: Map<string, string>;
  receipts: number;
  marks: number;
  /** Buyers with a receipt and no hold; with a hold and no receipt; with an unqueued mark and no hold. */
  holdless: string[];
  receiptless: string[];
  markedWithoutHold: string[];
};

export class Gate {
  #redis: Redis | Cluster;
  #store: string;
  #limitMs: number;
  #lastError: Error | undefined;

  /** @param limitMs how long Redis may take for one answer */
  constructor(place: RedisPlace, limitMs: number) {
    this.#store = `Redis at ${addressesOf(place.redisUrl).map(placeOf).join(', ')}`;
    this.#limitMs = limitMs;
    this.#redis = clientOf(place, limitMs);
    // A failed connect() says only that the connection is closed; the reason comes as an event.
    this.#redis.on('error', (error: Error) => {
      this.#lastError = whyAway(error);
    });
  }

  /** @throws {StoreAway} */
  async connect(): Promise<void> {
    await this.#ask(
      this.#redis.connect().catch((error: unknown) => {
        throw this.#lastError ?? error;
      }),
    );
  }

  close(): void {
    this.#redis.disconnect();
  }

  /** The sales that have keys here, known to the ledger or not. */
  async saleIds(): Promise<Set<string>> {
    const found = new Set<string>();
    for (const server of serversOf(this.#redis)) {
      const scan = (cursor: string) => server.scan(cursor, 'MATCH', '{sale:*}:*', 'COUNT', PAGE);
      for await (const keys of this.#pages(scan)) {
        for (const key of keys) {
          const saleId = /^\{sale:([^}]+)\}:/.exec(key)?.[1];
          if (saleId !== undefined) found.add(saleId);
        }
      }
    }
    return found;
  }

  /** @throws {StoreAway} also when a key is of another type than the gate's scripts need */
  async head(saleId: string): Promise<GateHead> {
    const keys = KEYS.map((name) => `{sale:${saleId}}:${name}`);
    const [stockKey, , , , saleKey] = keys as [string, string, string, string, string];
    const multi = this.#redis.multi();
    for (const key of keys) multi.type(key);
    for (const key of keys) multi.pttl(key);
    const replies = await this.#transaction(
      multi
        .time()
        .get(stockKey)
        .hmget(saleKey, ...FIELDS),
    );
    const types = replies.slice(0, 5).map(String);
    const wrong = types.findIndex((type, n) => type !== 'none' && type !== TYPES[n]);
    if (wrong >= 0)
      throw new StoreAway(`${keys[wrong]} is a ${types[wrong]}, not a ${TYPES[wrong]}: every script fails on it`);
    const failed = replies.find((reply) => reply instanceof Error);
    if (failed !== undefined) throw new StoreAway(`${this.#store}: ${failed.message}`);
    const [[seconds, micros], stock, values] = replies.slice(10) as [
      [string, string],
      string | null,
      (string | null)[],
    ];
    const fields = Object.fromEntries(FIELDS.map((field, n) => [field, values[n] ?? null])) as GateHead['fields'];
    const isThere = (n: number) => types[n] !== 'none';
    return {
      presence: presence(fields, stock, isThere(1) && isThere(2)),
      now: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
      stock,
      fields,
      keys: keys.filter((_, n) => isThere(n)),
      expiring: keys.filter((_, n) => Number(replies[5 + n]) >= 0),
    };
  }

  /** Reads a sale's holds, receipts and marks; again when they moved meanwhile, but only a few times. */
  async read(saleId: string): Promise<GateRead> {
    for (let n = 1; ; n += 1) {
      const read = await this.#readOnce(saleId);
      if (!read.moved || n === READS) return read;
    }
  }

  async #readOnce(saleId: string): Promise<GateRead> {
    const head = await this.head(saleId);
    const holds = new Map<string, string>();
    const key = (name: (typeof KEYS)[number]) => `{sale:${saleId}}:${name}`;
    for await (const page of this.#pages((cursor) => this.#redis.hscan(key('holds'), cursor, 'COUNT', PAGE))) {
      for (let n = 0; n < page.length; n += 2) holds.set(page[n] ?? '', page[n + 1] ?? '');
    }
    const receipts = { looked: 0, holdless: new Set<string>() };
    for await (const page of this.#pages((cursor) => this.#redis.sscan(key('buyers'), cursor, 'COUNT', PAGE))) {
      receipts.looked += page.length;
      for (const buyer of page) if (!holds.has(buyer)) receipts.holdless.add(buyer);
    }
    const marks = { looked: 0, holdless: new Set<string>() };
    for await (const page of this.#pages((cursor) => this.#redis.zscan(key('unqueued'), cursor, 'COUNT', PAGE))) {
      for (let n = 0; n < page.length; n += 2) {
        marks.looked += 1;
        if (!holds.has(page[n] ?? '')) marks.holdless.add(page[n] ?? '');
      }
    }
    const receiptless = await this.#withoutReceipt(key('buyers'), holds);
    const after = await this.head(saleId);
    return {
      head,
      moved: !sameHolders(head, after),
      holds,
      receipts: receipts.looked,
      marks: marks.looked,
      holdless: [...receipts.holdless],
      receiptless,
      markedWithoutHold: [...marks.holdless],
    };
  }

  async #withoutReceipt(buyersKey: string, holds: Map<string, string>): Promise<string[]> {
    const found: string[] = [];
    let page: string[] = [];
    const look = async () => {
      if (page.length === 0) return;
      const members = await this.#ask(this.#redis.smismember(buyersKey, ...page));
      found.push(...page.filter((_, n) => Number(members[n]) === 0));
      page = [];
    };
    for (const buyer of holds.keys()) {
      page.push(buyer);
      if (page.length === PAGE) await look();
    }
    await look();
    return found;
  }

  async *#pages(scan: (cursor: string) => Promise<[string, string[]]>): AsyncGenerator<string[]> {
    let cursor = '0';
    do {
      const [next, page] = await this.#ask(scan(cursor));
      yield page;
      cursor = next;
    } while (cursor !== '0');
  }

  #ask<T>(answer: Promise<T>): Promise<T> {
    return within(this.#limitMs, this.#store, answer);
  }

  /** The replies of a MULTI; a command's own error is its reply. */
  async #transaction(multi: ChainableCommander): Promise<unknown[]> {
    const replies = await this.#ask(multi.exec());
    if (replies === null) throw new StoreAway(`${this.#store} did not carry out a transaction`);
    return replies.map(([error, reply]) => error ?? reply);
  }
}

/** As the gate's scripts decide it: held units without their holds are a gate that lost something. */
function presence(fields: GateHead['fields'], stock: string | null, holders: boolean): GateHead['presence'] {
  if (fields.state === null) return 'not_loaded';
  if (fields.state === 'loading') return 'loading';
  if (stock === null || fields.held === null) return 'not_loaded';
  return Number(fields.held) > 0 && !holders ? 'not_loaded' : 'loaded';
}

function sameHolders(before: GateHead, after: GateHead): boolean {
  const figures = ({ stock, fields: { held, forfeited, generation, version } }: GateHead) =>
    JSON.stringify([stock, held, forfeited, generation, version]);
  return figures(before) === figures(after);
}

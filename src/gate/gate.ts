/**
 * The gate: one typed wrapper per script, replies parsed into unions.
 *
 * Every call ends within its time limit, whatever Redis does; a call that did not end may still run later, which every
 * script allows for (ids are minted by the caller, releases name the reservation). The client never resends by itself.
 */
import { z } from 'zod';
import { Batcher } from '../batcher.ts';
import type { Absent, Outcome } from '../domain/outcomes.ts';
import { formatHold, type Hold } from '../domain/reservation.ts';
import type { Sale } from '../domain/sale.ts';
import { gateCallBuyers, gateCallSeconds } from '../meter.ts';
import { checkServers, onOtherServer, type Client } from './client.ts';
import { gateKeys } from './keys.ts';
import { Latch, soldOutUpTo, type Holders } from './latch.ts';
import {
  Adopted,
  Configured,
  GaveBack,
  oneEach,
  parseAnswer,
  readHold,
  ReserveReply,
  Settled,
  Unqueued,
} from './replies.ts';
import { script } from './scripts.ts';
import { GateUnavailable, within } from './within.ts';

export { GateUnavailable };

export type Asking = { userId: string; reservationId: string; qty: number };
export type Receipt = Pick<Hold, 'userId' | 'reservationId'>;

/** What the gate has of a sale: units, and the pair (generation, version) that moves with every change of holders. */
export type GateFigures = {
  state: string;
  stock: number;
  held: number;
  forfeited: number;
  total: number;
  settings: number;
  generation: string;
  version: number;
  unqueued: number;
  /** Redis' clock, epoch milliseconds. */
  now: number;
};

export type GateOptions = {
  /** For one call, in milliseconds. */
  timeoutMs: number;
  /** Buyers per call at most. */
  batch: number;
  /** Buyers waiting per sale at most. */
  pending: number;
  /** See latch.ts; without it every request asks Redis. `holders`: the most that are remembered per sale. */
  latch?: { periodMs: number; holders: number; onError: (error: unknown) => void };
};

export class Gate {
  #redis: Client;
  #latch: Latch;
  #options: GateOptions;
  #reserving = new Map<string, Batcher<Asking, Outcome>>();
  #unmarking = new Map<string, Batcher<Receipt, undefined>>();

  constructor(redis: Client, options: GateOptions) {
    this.#redis = redis;
    this.#options = options;
    const { periodMs, holders, onError } = options.latch ?? { periodMs: 0, holders: 0, onError: () => undefined };
    this.#latch = new Latch({ periodMs, onError, readHolders: (saleId) => this.#holders(saleId, holders) });
    onOtherServer(redis, () => this.#latch.forget());
  }

  /** Whether this process knows by itself that nothing is left for this buyer. Costs nothing: ask it first. */
  refuses(saleId: string, userId: string, qty: number): boolean {
    return this.#latch.refuses(saleId, userId, qty);
  }

  /** Whether this buyer will be told by a question that is under way already, and costs the gate nothing. */
  joins(saleId: string, userId: string, qty: number): boolean {
    return this.#latch.joins(saleId, userId, qty);
  }

  /** How many buyers of this sale wait for a call that has not been made. */
  waiting(saleId: string): number {
    return this.#reserving.get(saleId)?.size ?? 0;
  }

  /**
   * Asks for a hold. Requests of one sale that arrive together go in one script call, in arrival order.
   * @param deadline by `performance.now()`
   * @throws {GateUnavailable | Overloaded | TooLate}
   */
  reserve(saleId: string, asking: Asking, deadline: number): Promise<Outcome> {
    let batcher = this.#reserving.get(saleId);
    if (!batcher) {
      batcher = new Batcher({
        known: ({ userId, qty }) => this.#latch.known(saleId, userId, qty),
        call: (batch, timeoutMs) => this.#reserveBatch(saleId, batch, timeoutMs),
        size: this.#options.batch,
        inFlight: 1,
        pending: this.#options.pending,
        timeoutMs: this.#options.timeoutMs,
      });
      this.#reserving.set(saleId, batcher);
    }
    const asked = batcher;
    return this.#latch.reserve(saleId, asking.userId, asking.qty, () => asked.add(asking, deadline));
  }

  async #reserveBatch(saleId: string, batch: Asking[], timeoutMs: number): Promise<Outcome[]> {
    const batchId = batch[0]?.reservationId ?? '';
    const sentAt = performance.now();
    const reply = await this.#run('reserve', saleId, ReserveReply, reserveArgs(batchId, batch), timeoutMs);
    gateCallSeconds.observe((performance.now() - sentAt) / 1000);
    gateCallBuyers.observe(batch.length);
    const [echo, presence, , stock, generation, version, ...answers] = reply;
    // A client that mixed up replies after a reconnect would hand one buyer's yes to another.
    if (echo !== batchId) throw new GateUnavailable(`asked with batch ${batchId}, got the reply to ${echo}`);
    const loaded = presence === 'loaded';
    if (!loaded) {
      this.#latch.see(saleId, undefined);
      return batch.map(() => ({ outcome: presence }));
    }
    oneEach(batch, answers);
    const outcomes = batch.map((asking, n) => parseAnswer(saleId, asking, String(answers[n])));
    const seen = { sentAt, stock: Number(stock), generation: String(generation), version: Number(version) };
    this.#latch.see(saleId, { ...seen, soldOutUpTo: soldOutUpTo(batch, outcomes) });
    return outcomes;
  }

  /**
   * Takes the unqueued mark off holds that the queue has. Not waited for by any buyer: a mark that stays is a message
   * sent twice, which is one order.
   * @throws {GateUnavailable | Overloaded | TooLate}
   */
  queued(saleId: string, receipt: Receipt): Promise<void> {
    let batcher = this.#unmarking.get(saleId);
    if (!batcher) {
      batcher = new Batcher({
        call: async (batch, timeoutMs) => {
          await this.#run('queued', saleId, z.number(), pairs(batch), timeoutMs);
          return batch.map(() => undefined);
        },
        size: this.#options.batch,
        inFlight: 1,
        pending: this.#options.pending,
        timeoutMs: this.#options.timeoutMs,
      });
      this.#unmarking.set(saleId, batcher);
    }
    return batcher.add(receipt, performance.now() + 4 * this.#options.timeoutMs);
  }

  /** Lets go of what this process remembers of other sales; whoever asks for one of them is served as ever. */
  forgetAllBut(living: ReadonlySet<string>): void {
    this.#latch.forgetAllBut(living);
    for (const batchers of [this.#reserving, this.#unmarking]) {
      for (const [saleId, { idle }] of batchers) if (idle && !living.has(saleId)) batchers.delete(saleId);
    }
  }

  /** Resolves when no batch waits or is under way. */
  async drained(): Promise<void> {
    for (const batcher of [...this.#reserving.values(), ...this.#unmarking.values()]) await batcher.drained();
  }

  /** @returns per receipt whether its units were given back to the stock; or why the gate did nothing */
  async release(saleId: string, receipts: Receipt[], token = ''): Promise<Absent | ('released' | 'not_held')[]> {
    return this.#giveBack('release', saleId, receipts, token) as Promise<Absent | ('released' | 'not_held')[]>;
  }

  /** @returns per receipt whether its hold was taken away without giving units to the stock; or why the gate did nothing */
  async forfeit(saleId: string, receipts: Receipt[], token = ''): Promise<Absent | ('forfeited' | 'not_held')[]> {
    return this.#giveBack('forfeit', saleId, receipts, token) as Promise<Absent | ('forfeited' | 'not_held')[]>;
  }

  async #giveBack(name: 'release' | 'forfeit', saleId: string, receipts: Receipt[], token: string) {
    const reply = await this.#run(name, saleId, GaveBack, [token, ...pairs(receipts)]);
    if (reply[0] !== 'loaded') return reply[0];
    return oneEach(receipts, reply.slice(1));
  }

  /** Writes the holds of live orders that the gate forgot. */
  async adopt(saleId: string, holds: Hold[], token = ''): Promise<Absent | ('adopted' | 'held' | 'other')[]> {
    const args = holds.flatMap((hold) => [hold.userId, formatHold(hold)]);
    const reply = await this.#run('adopt', saleId, Adopted, [token, ...args]);
    if (reply[0] !== 'loaded') return reply[0];
    return oneEach(holds, reply.slice(1)) as ('adopted' | 'held' | 'other')[];
  }

  /** Gives to the stock what was forfeited when a full pass began that found nothing missing. */
  async settle(saleId: string, seen: Pick<GateFigures, 'generation' | 'forfeited'>, token = '') {
    const reply = await this.#run('settle', saleId, Settled, [token, seen.generation, seen.forfeited]);
    return reply[0] === 'settled' ? { settled: reply[1] } : reply[0];
  }

  /** Holds marked for longer than the grace, marked anew from now: to be sent to the queue again. */
  async unqueued(saleId: string, graceMs: number, limit: number, token = ''): Promise<Absent | Hold[]> {
    const reply = await this.#run('unqueued', saleId, Unqueued, [token, graceMs, limit]);
    if (reply[0] !== 'loaded') return reply[0];
    const holds: Hold[] = [];
    for (let n = 1; n < reply.length; n += 2) holds.push(readHold(saleId, String(reply[n]), String(reply[n + 1])));
    return holds;
  }

  /**
   * Applies settings to new holds; the gate refuses older ones than it has.
   * @param mode 'ask': refused when more is held than the new total; 'decided': the ledger has them already
   */
  async configure(sale: Sale, mode: 'ask' | 'decided', token = '') {
    const args = [token, ...settingsArgs(sale), mode];
    const [answer, figure] = await this.#run('configure', sale.saleId, Configured, args);
    return { answer, figure };
  }

  /** First step of opening: 'live' when there is a gate already, 'stale' when a newer token is at work. */
  async begin(saleId: string, token: number): Promise<'begun' | 'live' | 'stale'> {
    return this.#run('open', saleId, z.enum(['begun', 'live', 'stale']), ['begin', token]);
  }

  /** Second step, repeated: the holds of live orders. */
  async chunk(saleId: string, holds: Hold[], token: number): Promise<'added' | 'stale'> {
    const args = holds.flatMap((hold) => [hold.userId, formatHold(hold)]);
    return this.#run('open', saleId, z.enum(['added', 'stale']), ['chunk', token, ...args]);
  }

  /** Last step: from here on buyers are served. */
  async open(sale: Sale, token: number): Promise<'opened' | 'stale'> {
    return this.#run('open', sale.saleId, z.enum(['opened', 'stale']), ['open', token, ...settingsArgs(sale)]);
  }

  /**
   * Whether this Redis, or every master of this cluster, can be trusted with a gate.
   * @throws {GateUnavailable} that says why not: away, a replica, or one that evicts keys when memory is short
   */
  check(): Promise<void> {
    return this.#within(checkServers(this.#redis), 'info');
  }

  /** Removes a closed sale's gate. */
  async remove(saleId: string): Promise<void> {
    await this.#within(this.#redis.unlink(...gateKeys(saleId)), 'unlink');
  }

  /** @returns the buyer's hold, or undefined; also of a gate that is not loaded */
  async hold(saleId: string, userId: string): Promise<Hold | undefined> {
    const [, , holds] = gateKeys(saleId);
    const text = await this.#within(this.#redis.hget(holds, userId), 'hget');
    return text === null ? undefined : readHold(saleId, userId, text);
  }

  /** @returns the buyers' holds, in the buyers' order; undefined for who has none */
  async holdsOf(saleId: string, userIds: string[]): Promise<(Hold | undefined)[]> {
    if (userIds.length === 0) return [];
    const [, , holds] = gateKeys(saleId);
    const texts = await this.#within(this.#redis.hmget(holds, ...userIds), 'hmget');
    return userIds.map((userId, n) => {
      const text = texts[n] ?? null;
      return text === null ? undefined : readHold(saleId, userId, text);
    });
  }

  async #holders(saleId: string, limit: number): Promise<Holders | undefined> {
    const [, buyers, , , sale] = gateKeys(saleId);
    if ((await this.#within(this.#redis.scard(buyers), 'scard')) > limit) return undefined;
    const replies = await this.#within(
      this.#redis.multi().hmget(sale, 'generation', 'version').smembers(buyers).exec(),
      'holders',
    );
    const [key, users] = (replies ?? []).map(([error, reply]) => {
      if (error) throw new GateUnavailable(error.message, { cause: error });
      return reply;
    }) as [[string | null, string | null], string[]];
    return { of: key.join(':'), users: new Set(users) };
  }

  /**
   * A part of the sale's holds, and the cursor for the next part ('0' after the last; begin with '0'). A hold that is
   * there during the whole scan is seen at least once.
   */
  async scanHolds(saleId: string, cursor: string, count: number): Promise<{ cursor: string; holds: Hold[] }> {
    const [, , holds] = gateKeys(saleId);
    const [next, fields] = await this.#within(this.#redis.hscan(holds, cursor, 'COUNT', count), 'hscan');
    const found: Hold[] = [];
    for (let n = 0; n < fields.length; n += 2) {
      found.push(readHold(saleId, fields[n] ?? '', fields[n + 1] ?? ''));
    }
    return { cursor: next, holds: found };
  }

  /** @returns what the gate has of the sale; undefined when it is not loaded or loading */
  async figures(saleId: string): Promise<GateFigures | undefined> {
    const [stock, buyers, holds, unqueued, sale] = gateKeys(saleId);
    const replies = await this.#within(
      this.#redis.multi().get(stock).hgetall(sale).exists(buyers, holds).zcard(unqueued).time().exec(),
      'figures',
    );
    const [left, fields, there, marked, time] = (replies ?? []).map(([error, reply]) => {
      if (error) throw new GateUnavailable(error.message, { cause: error });
      return reply;
    }) as [string | null, Record<string, string>, number, number, [string | number, string | number]];
    // The same as in lua/common.lua: what no buyer is served from is no gate here either.
    if (left === null || fields.state === undefined || fields.state === 'loading') return undefined;
    if (Number(fields.held) > 0 && there < 2) return undefined;
    return {
      state: fields.state,
      stock: Number(left),
      held: Number(fields.held),
      forfeited: Number(fields.forfeited),
      total: Number(fields.total),
      settings: Number(fields.settings),
      generation: fields.generation ?? '',
      version: Number(fields.version),
      unqueued: marked,
      now: Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000),
    };
  }

  async #run<T>(
    name: string,
    saleId: string,
    answer: z.ZodType<T>,
    args: (string | number)[],
    timeoutMs = this.#options.timeoutMs,
  ): Promise<T> {
    const reply = await within(timeoutMs, name, script(name).run(this.#redis, gateKeys(saleId), args));
    if (MOVES_STOCK.has(name)) this.#latch.see(saleId, undefined); // what this process did it need not wait to see
    const parsed = answer.safeParse(reply);
    if (parsed.success) return parsed.data;
    throw new GateUnavailable(`${name}: a reply that does not answer it: ${JSON.stringify(reply).slice(0, 200)}`);
  }

  #within<T>(reply: Promise<T>, what: string): Promise<T> {
    return within(this.#options.timeoutMs, what, reply);
  }
}

/** Scripts after which there may be more to sell than was seen. */
const MOVES_STOCK = new Set(['release', 'settle', 'configure', 'open']);

/** The arguments of reserve.lua: the buyers in order, and what they ask for in columns beside them. */
export function reserveArgs(batchId: string, batch: Asking[]): string[] {
  const quantities = batch.map(({ qty }) => qty);
  const [first] = quantities;
  const same = quantities.every((qty) => qty === first);
  const ids = batch.map(({ reservationId }) => reservationId).join('');
  return [batchId, ids, same ? String(first) : quantities.join(','), ...batch.map(({ userId }) => userId)];
}

const pairs = (receipts: Receipt[]) => receipts.flatMap(({ userId, reservationId }) => [userId, reservationId]);

function settingsArgs(sale: Sale): (string | number)[] {
  const { settings, state, startsAt, endsAt, total, maxPerReservation, holdSeconds, amount, currency } = sale;
  return [settings, state, startsAt, endsAt, total, maxPerReservation, holdSeconds, amount, currency];
}

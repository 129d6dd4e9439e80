/** Scripts called by themselves on a real Redis, with the gate's rules checked after every single call. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { reserveArgs } from '../../src/gate/gate.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { script } from '../../src/gate/scripts.ts';

export type Settings = {
  settings: number;
  state: string;
  startsAt: number;
  endsAt: number;
  total: number;
  maxPerReservation: number;
  holdSeconds: number;
  amount: number;
  currency: string;
};

const HOUR = 3_600_000;

/** An open sale, but for what is told. */
export function settings(but: Partial<Settings> = {}): Settings {
  return {
    ...{ settings: 1, state: 'open', startsAt: Date.now() - HOUR, endsAt: Date.now() + HOUR, total: 10 },
    ...{ maxPerReservation: 4, holdSeconds: 600, amount: 500, currency: 'EUR' },
    ...but,
  };
}

/** As arguments of configure and open. */
export const inOrder = (s: Settings) => [
  ...[s.settings, s.state, s.startsAt, s.endsAt, s.total, s.maxPerReservation, s.holdSeconds, s.amount, s.currency],
];

export type Asked = { user: string; id?: string; qty?: number };

/** A hold as text. */
export function holdText(but: { id?: string; qty?: number; at?: number; expires?: number; amount?: number } = {}) {
  const { id = randomUUID(), qty = 1, at = 1_700_000_000_000, expires = 1_700_000_600_000, amount = 500 } = but;
  return [id, qty, at, expires, amount, 'EUR'].join('|');
}

export const idOf = (hold: string | undefined) => String(hold).split('|')[0] ?? '';

/** One sale's gate. */
export class Probe {
  readonly redis: Redis;
  readonly saleId: string;

  constructor(redis: Redis, saleId: string = randomUUID()) {
    this.redis = redis;
    this.saleId = saleId;
  }

  get keys() {
    const [stock, buyers, holds, unqueued, sale] = gateKeys(this.saleId);
    return { stock, buyers, holds, unqueued, sale };
  }

  /** Runs a script and then checks the gate, whatever came of it. */
  async call(name: string, ...args: (string | number)[]): Promise<unknown> {
    let after = `after ${name}`;
    try {
      return await script(name).run(this.redis, gateKeys(this.saleId), args);
    } catch (error) {
      after += ` failed with ${String(error)}`;
      throw error;
    } finally {
      await this.checkRules(after);
    }
  }

  /** stock + held + forfeited = total, held = Σ holds, buyers = holds' buyers, marks only of holds. */
  async checkRules(after = ''): Promise<void> {
    const { stock, held, forfeited, total, state, holds, buyers, unqueued } = await this.read();
    if (state === undefined) return; // no gate, no rule
    const units = [...holds.values()].reduce((sum, hold) => sum + Number(hold.split('|')[1]), 0);
    const lost = held > 0 && (holds.size === 0 || buyers.length === 0);
    if (state !== 'loading' && stock !== undefined)
      expect(stock + held + forfeited, `units at the gate ${after}`).toBe(total);
    if (lost) return; // a test took a key away: what is left must only not be taken for a gate
    expect(units, `units of the holds ${after}`).toBe(held);
    expect(buyers, `receipts ${after}`).toEqual([...holds.keys()].sort());
    expect(
      unqueued.filter((buyer) => !holds.has(buyer)),
      `marks without a hold ${after}`,
    ).toEqual([]);
  }

  async read() {
    const { stock, buyers, holds, unqueued, sale } = this.keys;
    const fields = await this.redis.hgetall(sale);
    const left = await this.redis.get(stock);
    return {
      stock: left === null ? undefined : Number(left),
      state: fields.state,
      held: Number(fields.held),
      forfeited: Number(fields.forfeited),
      total: Number(fields.total),
      version: Number(fields.version),
      fields,
      holds: new Map(Object.entries(await this.redis.hgetall(holds))),
      buyers: (await this.redis.smembers(buyers)).sort(),
      unqueued: await this.redis.zrange(unqueued, '0', '-1'),
    };
  }

  /** Everything in this logical database, for comparing before and after. */
  async dump(): Promise<Record<string, unknown>> {
    const all: Record<string, unknown> = {};
    for (const key of (await this.redis.keys('*')).sort()) {
      const type = await this.redis.type(key);
      if (type === 'string') all[key] = await this.redis.get(key);
      else if (type === 'hash') all[key] = await this.redis.hgetall(key);
      else if (type === 'set') all[key] = (await this.redis.smembers(key)).sort();
      else if (type === 'zset') all[key] = await this.redis.zrange(key, '0', '-1', 'WITHSCORES');
      else all[key] = { type, list: await this.redis.lrange(key, 0, -1) };
    }
    return all;
  }

  /** A loaded gate. */
  async open(but: Partial<Settings> = {}, token = 1): Promise<this> {
    expect(await this.call('open', 'begin', token)).toBe('begun');
    expect(await this.call('open', 'open', token, ...inOrder(settings(but)))).toBe('opened');
    return this;
  }

  openStep(token: number, but: Partial<Settings> = {}): Promise<unknown> {
    return this.call('open', 'open', token, ...inOrder(settings(but)));
  }

  /** @param mode 'ask' may be refused; 'decided' is what the ledger has already */
  configure(but: Partial<Settings> = {}, mode: 'ask' | 'decided' = 'ask'): Promise<unknown> {
    return this.call('configure', '', ...inOrder(settings(but)), mode);
  }

  /** Each buyer's answer, in order, a win as `ok|hold`; or why nothing was decided. */
  async reserve(...asked: Asked[]): Promise<string[]> {
    const batch = randomUUID();
    const asking = asked.map(({ user, id = randomUUID(), qty = 1 }) => ({ userId: user, reservationId: id, qty }));
    const reply = (await this.call('reserve', ...reserveArgs(batch, asking))) as string[];
    const [echo, presence, , stock, , , ...answers] = reply;
    expect(echo).toBe(batch);
    if (presence !== 'loaded') return [String(presence)];
    expect(stock).toBe((await this.read()).stock);
    return answers.map((answer, n) => (answer.startsWith(`${asking[n]?.reservationId}|`) ? `ok|${answer}` : answer));
  }

  /** A gate with this many buyers who hold one unit each. @returns buyer, reservation id, buyer, … */
  async openWith(count: number): Promise<string[]> {
    const holds = Array.from({ length: count }, (_, n) => [`u${n}`, holdText()] as const);
    await this.call('open', 'begin', 1);
    await this.call('open', 'chunk', 1, ...holds.flat());
    await this.openStep(1, { total: count });
    return holds.flatMap(([user, hold]) => [user, idOf(hold)]);
  }

  /** Reserves, and expects to win. @returns the hold */
  async win(user: string, qty = 1): Promise<string> {
    const [answer = ''] = await this.reserve({ user, qty });
    expect(answer).toMatch(/^ok\|/);
    return answer.slice('ok|'.length);
  }
}

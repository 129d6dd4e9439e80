/** The latch's promises to buyers, kept by several API processes on one gate. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Gate } from '../../src/gate/gate.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { LOOK_AFTER } from '../../src/gate/latch.ts';
import { privateRedis } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { startSellers, type Answer, type Seller } from './processes.ts';

const PERIOD_MS = 250;
const HOLDER_BOUND = 50;

let stores: Stores;
let redisServer: Awaited<ReturnType<typeof privateRedis>>;
let redis: Redis;
let sellers: Seller[];
const seller = (n: number): Seller => sellers[n % sellers.length] as Seller;
beforeAll(async () => {
  [stores, redisServer] = await Promise.all([freshStores(), privateRedis()]);
  redis = new Redis(redisServer.url);
  redis.on('error', () => undefined); // one test stops it
  const env = { LATCH_MS: String(PERIOD_MS), LATCH_HOLDERS: String(HOLDER_BOUND) };
  sellers = await startSellers(2, { ...stores.env, REDIS_URL: redisServer.url, ...env });
});
afterAll(async () => {
  redis.disconnect();
  await stores.drop();
});

let buyers = 0;
const newBuyer = () => `b${(buyers += 1)}`;

/** A sale of which nothing is left, and both processes know it. @returns the holders */
async function soldOutSale(units = 3, settings: Record<string, unknown> = {}) {
  const saleId = randomUUID();
  expect((await seller(0).put(saleId, { total: units, ...settings })).status).toBe(201);
  await expect.poll(async () => (await seller(1).get(saleId)).status).toBe(200);
  const holders = await Promise.all(Array.from({ length: units }, (_, n) => seller(n).press(saleId, newBuyer())));
  expect(holders.map(({ code }) => code)).toEqual(Array(units).fill('ok'));
  for (const each of sellers) await knowsIt(each, saleId);
  return { saleId, holders: holders.map(({ body }) => body) };
}

/** Presses until this process refuses without asking the gate. */
async function knowsIt(each: Seller, saleId: string): Promise<void> {
  await expect
    .poll(async () => {
      const before = await calls();
      const { code } = await each.press(saleId, newBuyer());
      return code === 'sold_out' && (await calls()) === before;
    })
    .toBe(true);
}

/** Script calls that this Redis has run so far. */
async function calls(): Promise<number> {
  const [, count] = /cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats')) ?? [];
  return Number(count ?? 0);
}

/**
 * Presses by new buyers, one after the other, until one is answered like that. Whoever comes a period after it was so may
 * not be answered from what was seen before, however slow the machine is.
 * @param since when it became so, by `performance.now()`; it is so by now if left out
 * @returns all answers on the way
 */
async function pressUntil(each: Seller, saleId: string, wanted: string, since = performance.now()): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (;;) {
    const pressedAt = performance.now();
    const answer = await each.press(saleId, newBuyer());
    answers.push(answer);
    if (answer.code === wanted) return answers;
    const overdueMs = pressedAt - since - PERIOD_MS;
    if (overdueMs > 0) throw new Error(`${overdueMs} ms after the period not ${wanted}, but ${JSON.stringify(answer)}`);
    await sleep(5);
  }
}

const codes = (answers: Answer[]) => [...new Set(answers.map(({ code }) => code))].sort();
const crowd = (each: Seller, saleId: string, size: number, qty = 1) =>
  Promise.all(Array.from({ length: size }, () => each.press(saleId, newBuyer(), qty)));

describe('a unit that is given back', () => {
  test.each([
    ['the process that took it back', 0],
    ['another one', 1],
  ])('is sold by %s within the period, once', async (_, which) => {
    const { saleId, holders } = await soldOutSale();
    for (const holder of holders) {
      expect((await seller(0).cancel(saleId, holder)).status).toBe(204);
      const before = await calls();
      const sold = pressUntil(seller(which), saleId, 'ok');
      expect(codes(await sold).filter((code) => code !== 'sold_out')).toEqual(['ok']);
      // Whoever asked first has it: one question, and then the mark of what is in the queue is taken off.
      expect((await calls()) - before).toBeLessThanOrEqual(2);
      expect(codes(await crowd(seller(which), saleId, 20))).toEqual(['sold_out']);
    }
  });
});

describe('a buyer who holds', () => {
  test('is never told "sold out" by the process that sold it, however many others ask there', async () => {
    const saleId = randomUUID();
    await seller(0).put(saleId, { total: 20 });
    const own = Array.from({ length: 200 }, async () => {
      const userId = newBuyer();
      const answers = [await seller(0).press(saleId, userId)];
      const again = () => seller(0).press(saleId, userId);
      for (let n = 0; n < 5; n += 1) answers.push(await again());
      return answers;
    });
    const won = (await Promise.all(own)).filter(([first]) => first?.code === 'ok');
    expect(won).toHaveLength(20);
    for (const [, ...later] of won) expect(codes(later)).toEqual(['dup']);
  });

  test('and won through another process finds it here one period later at the latest', async () => {
    const { saleId, holders } = await soldOutSale();
    await seller(0).cancel(saleId, holders[0] ?? {});
    const winner = (await pressUntil(seller(0), saleId, 'ok')).at(-1)?.body['userId'];
    await sleep(PERIOD_MS);
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => seller(1).press(saleId, String(winner))),
      crowd(seller(1), saleId, 200),
    ]);
    expect(codes(answers.slice(0, 20) as Answer[])).toEqual(['dup']);
  });
});

describe('what else is true is told first', () => {
  test('a quantity over the limit, also while somebody looks', async () => {
    const { saleId } = await soldOutSale(3, { maxPerReservation: 2 });
    const answers = Array.from({ length: 10 }, async () => {
      await sleep(PERIOD_MS / 4);
      return Promise.all([
        crowd(seller(0), saleId, 20),
        crowd(seller(0), saleId, 20, 3),
        crowd(seller(0), saleId, 20, 2),
      ]);
    });
    for (const [one, over, two] of await Promise.all(answers)) {
      expect([codes(one), codes(over), codes(two)]).toEqual([['sold_out'], ['qty_over_limit'], ['sold_out']]);
    }
  });

  test.each<['pause' | 'end', string]>([
    ['pause', 'paused'],
    ['end', 'ended'],
  ])(
    '%s: at once by the process that did it, within the period and its list of sales by the other',
    async (act, code) => {
      const { saleId } = await soldOutSale();
      await seller(0).act(saleId, act);
      expect(codes(await crowd(seller(0), saleId, 50))).toEqual([code]);
      await pressUntil(seller(1), saleId, code);
      expect(codes(await crowd(seller(1), saleId, 50))).toEqual([code]);
    },
  );

  test('the end by the clock', async () => {
    const endsAt = Date.now() + 3000;
    const { saleId } = await soldOutSale(3, { endsAt: new Date(endsAt).toISOString() });
    const tick = 5; // the clocks are the same, rounded to milliseconds
    for (const each of sellers) {
      await pressUntil(each, saleId, 'ended', performance.now() + Math.max(0, endsAt - Date.now()) + tick);
      expect(codes(await crowd(each, saleId, 50))).toEqual(['ended']);
    }
  });
});

describe('what it costs Redis', () => {
  test('the gate is asked once the period is nearly over, not before, and always when it is over', async () => {
    const { saleId } = await soldOutSale();
    let last: { from: number; to: number } | undefined; // a question: when it was asked at the earliest, at the latest
    for (let questions = 0; questions < 5;) {
      const [before, from] = [await calls(), performance.now()];
      expect((await seller(0).press(saleId, newBuyer())).code).toBe('sold_out');
      const to = performance.now();
      const asked = (await calls()) - before;
      if (last && to < last.from + LOOK_AFTER * PERIOD_MS) expect(asked, `${to - last.from} ms later`).toBe(0);
      if (last && from > last.to + PERIOD_MS) expect(asked, `${from - last.to} ms later`).toBe(1);
      expect(asked).toBeLessThanOrEqual(1);
      if (asked === 0) continue;
      last = { from, to };
      questions += 1;
    }
  });

  test('a sold-out sale: about one call per period and process, however many ask', async () => {
    const { saleId } = await soldOutSale();
    const [before, started] = [await calls(), performance.now()];
    let refused = 0;
    for (let n = 0; n < 100; n += 1) {
      const answers = await Promise.all(sellers.map((each) => crowd(each, saleId, 20)));
      expect(codes(answers.flat())).toEqual(['sold_out']);
      refused += answers.flat().length;
    }
    const periods = (performance.now() - started) / PERIOD_MS;
    expect(refused).toBe(4000);
    expect((await calls()) - before).toBeLessThanOrEqual(sellers.length * (periods / LOOK_AFTER + 1));
  });

  test('thousands who press before it is sold out: who waits when that is known is refused without a call', async () => {
    const saleId = randomUUID();
    expect((await seller(0).put(saleId, { total: 3 })).status).toBe(201);
    const errors: unknown[] = [];
    const latch = { periodMs: 600_000, holders: 10, onError: (error: unknown) => errors.push(error) };
    const gate = new Gate(redis, { timeoutMs: 10_000, batch: 10, pending: 5000, latch });
    const press = (userId: string) =>
      gate.reserve(saleId, { userId, reservationId: randomUUID(), qty: 1 }, performance.now() + 60_000);
    const buyers = Array.from({ length: 3000 }, newBuyer);
    const before = await calls();
    const outcomes = (await Promise.all(buyers.map(press))).map(({ outcome }) => outcome);
    const spent = (await calls()) - before;
    expect(outcomes).toEqual([...Array<string>(3).fill('ok'), ...Array<string>(2997).fill('sold_out')]);
    expect(spent).toBeLessThan(30); // of 300 if all were asked for
    expect(await Promise.all(buyers.slice(0, 3).map(press))).toEqual(
      Array(3).fill(expect.objectContaining({ outcome: 'dup' })),
    );
    expect(errors).toEqual([]);
  });

  test('more holders than the bound: the gate is asked, in batches, and is always right', async () => {
    const { saleId, holders } = await manyHolders(HOLDER_BOUND + 10);
    const before = await calls();
    expect(codes(await crowd(seller(0), saleId, 100))).toEqual(['sold_out']);
    const [spent, again] = [(await calls()) - before, await calls()];
    expect(spent).toBeGreaterThan(0);
    expect(spent).toBeLessThan(100);
    expect((await seller(0).press(saleId, newBuyer())).code).toBe('sold_out');
    expect(await calls()).toBe(again + 1);
    await seller(1).cancel(saleId, holders[0] ?? {});
    expect((await seller(0).press(saleId, newBuyer())).code).toBe('ok'); // no period to wait for
  });

  async function manyHolders(units: number) {
    const saleId = randomUUID();
    await seller(0).put(saleId, { total: units });
    const won = await crowd(seller(0), saleId, units);
    expect(codes(won)).toEqual(['ok']);
    await seller(0).press(saleId, newBuyer());
    return { saleId, holders: won.map(({ body }) => body) };
  }
});

describe('a gate that cannot be asked', () => {
  test('is no sold-out one: after the period 503, never "sold out"', async () => {
    const { saleId } = await soldOutSale();
    await redis.unlink(...gateKeys(saleId));
    for (const each of sellers) {
      await pressUntil(each, saleId, 'gate_not_loaded');
      expect(codes(await crowd(each, saleId, 50))).toEqual(['gate_not_loaded']);
    }
  });

  test('away: after the period 503, and back as it was', async () => {
    const { saleId, holders } = await soldOutSale();
    redisServer.kill('SIGKILL');
    await redisServer.exited;
    for (const each of sellers) {
      await pressUntil(each, saleId, 'gate_unavailable');
      const answers = await crowd(each, saleId, 50);
      expect(codes(answers)).toEqual(['gate_unavailable']);
      expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(503));
    }
    await redisServer.restart();
    for (const each of sellers) {
      await expect.poll(async () => (await each.press(saleId, newBuyer())).code, { timeout: 20_000 }).toBe('sold_out');
      const found = await each.press(saleId, String(holders[0]?.['userId']));
      expect(found.body).toMatchObject({ outcome: 'dup', reservationId: holders[0]?.['reservationId'] });
    }
  }, 40_000);
});

/** The admin routes: sales created and changed, paused, resumed, ended, closed, their figures, and the list of orders. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, deliver, eventOf, expectProblem, newId, press, putSale, record, saleSettings } from './api.ts';
import { reservationUrl, testApi, win, type TestApi, type Won } from './api.ts';

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const put = (saleId: string, body: object) => admin(api, 'PUT', `/${saleId}`, body);

describe('a sale’s settings', () => {
  test('created: 201 with all of them, and the sale is open at once', async () => {
    const saleId = newId();
    const settings = saleSettings();
    const response = await put(saleId, settings);
    expect(response.statusCode).toBe(201);
    expect(response.json()).toEqual({ saleId, ...settings, state: 'open', settings: 1 });
    expect((await press(api, saleId, 'u')).statusCode).toBe(202);
  });

  test('changed: 200, and new settings touch new holds only', async () => {
    const saleId = await putSale(api);
    const before = await win(api, saleId, 'before');
    const changed = saleSettings({ name: 'Two phones', price: { amount: 100, currency: 'EUR' }, holdSeconds: 60 });
    const response = await put(saleId, changed);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ ...changed, settings: 2 });
    expect(await win(api, saleId, 'before')).toEqual({ ...before, outcome: 'dup' });
    const after = await win(api, saleId, 'after');
    expect(after.amount).toBe(100);
    expect(Date.parse(after.expiresAt) - Date.parse(after.reservedAt)).toBe(60_000);
  });

  test('twenty at once: some may be told to come again while one opens the gate, and coming again is enough', async () => {
    const saleId = newId();
    const answers = await Promise.all(Array.from({ length: 20 }, () => put(saleId, saleSettings())));
    const refused = answers.filter(({ statusCode }) => statusCode >= 300);
    for (const answer of refused) expectProblem(answer, 'gate_not_loaded');
    expect(refused.length).toBeLessThan(20);
    expect(answers.filter(({ statusCode }) => statusCode === 201).length).toBeLessThanOrEqual(1);
    expect((await put(saleId, saleSettings())).statusCode).toBe(200);
    expect((await press(api, saleId, 'u')).statusCode).toBe(202);
  });

  test('times with an offset are told in UTC', async () => {
    const saleId = newId();
    const response = await put(
      saleId,
      saleSettings({ startsAt: '2026-01-01T01:00:00+02:00', endsAt: '2999-01-01T00:00:00Z' }),
    );
    expect(response.json()).toMatchObject({ startsAt: '2025-12-31T23:00:00.000Z' });
  });

  test.each<[string, Record<string, unknown>]>([
    ['endsAt before startsAt', { endsAt: '2020-01-01T00:00:00Z' }],
    ['endsAt in the year 10000, in UTC', { endsAt: '9999-12-31T23:59:59-01:00' }],
    ['endsAt in the year 10000, rounded', { endsAt: '9999-12-31T23:59:59.9999999Z' }],
    ['endsAt at startsAt', { startsAt: '2030-01-01T00:00:00Z', endsAt: '2030-01-01T01:00:00+01:00' }],
    ['a day that is none', { startsAt: '2026-02-30T00:00:00Z' }],
    ['a date without a time', { startsAt: '2026-02-01' }],
    ['a time without an offset', { startsAt: '2026-02-01T00:00:00' }],
    ['a year before the first', { startsAt: '0000-01-01T00:00:00Z' }],
    ['a name with a NUL', { name: 'a\u0000b' }],
    ['an empty name', { name: '' }],
    ['a name of 201 characters', { name: 'x'.repeat(201) }],
    ['total -1', { total: -1 }],
    ['total as text', { total: '10' }],
    ['total beyond a billion', { total: 1_000_000_001 }],
    ['holdSeconds 0', { holdSeconds: 0 }],
    ['holdSeconds 1.5', { holdSeconds: 1.5 }],
    ['maxPerReservation 0', { maxPerReservation: 0 }],
    ['a price below zero', { price: { amount: -1, currency: 'EUR' } }],
    ['a price in fractions', { price: { amount: 4.99, currency: 'EUR' } }],
    ['a currency in small letters', { price: { amount: 1, currency: 'eur' } }],
    ['an unknown member', { colour: 'red' }],
    ['an unknown member of the price', { price: { amount: 1, currency: 'EUR', tax: 1 } }],
    ['a state of its own', { state: 'open' }],
    ...['name', 'total', 'startsAt', 'endsAt', 'holdSeconds', 'maxPerReservation', 'price'].map(
      (name): [string, Record<string, unknown>] => [
        `${name} missing: the whole settings are needed`,
        { [name]: undefined },
      ],
    ),
  ])('%s: 400, and no such sale', async (_, changes) => {
    const saleId = newId();
    expectProblem(await put(saleId, saleSettings(changes)), 'invalid_request');
    expectProblem(await admin(api, 'GET', `/${saleId}`), 'sale_not_found');
  });

  test('no units at all is a sale, too', async () => {
    const saleId = await putSale(api, { total: 0 });
    expectProblem(await press(api, saleId, 'u'), 'sold_out');
  });

  test('total below what is held, or sold: 409 total_too_low; to exactly that, and up again: fine', async () => {
    const saleId = await putSale(api, { total: 10 });
    const won = [await win(api, saleId, 'a', 2), await win(api, saleId, 'b', 2)];
    for (const recorded of [false, true]) {
      if (recorded) await record(api, ...won);
      expectProblem(await put(saleId, saleSettings({ total: 3 })), 'total_too_low');
      expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({
        total: 10,
        gate: { total: 10, held: 4, stock: 6 },
        ledger: { total: 10 },
      });
    }
    expect((await put(saleId, saleSettings({ total: 4 }))).statusCode).toBe(200);
    expectProblem(await press(api, saleId, 'c'), 'sold_out');
    expect((await put(saleId, saleSettings({ total: 5 }))).statusCode).toBe(200);
    // A process that has just said "sold out" may repeat it for LATCH_MS.
    await expect.poll(async () => (await press(api, saleId, 'c')).statusCode, { timeout: 15_000 }).toBe(202);
    expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({
      gate: { total: 5, held: 5, stock: 0 },
      ledger: { total: 5 },
    });
  });

  test('the currency is fixed once there is a hold', async () => {
    const saleId = await putSale(api);
    const inUsd = saleSettings({ price: { amount: 1, currency: 'USD' } });
    expect((await put(saleId, inUsd)).statusCode).toBe(200);
    await win(api, saleId, 'u');
    expectProblem(await put(saleId, saleSettings()), 'currency_fixed');
    expect((await put(saleId, saleSettings({ price: { amount: 2, currency: 'USD' } }))).statusCode).toBe(200);
  });
});

describe('its life', () => {
  test('pause, resume, end: at /reserve at once, and repeatable', async () => {
    const saleId = await putSale(api);
    const steps: [string, string, () => Promise<unknown>][] = [
      ['pause', 'paused', async () => expectProblem(await press(api, saleId, 'u'), 'paused')],
      ['resume', 'open', async () => expect((await win(api, saleId, 'u')).reservationId).toBeTruthy()],
      ['end', 'ended', async () => expectProblem(await press(api, saleId, 'other'), 'ended')],
    ];
    for (const [action, state, effect] of steps) {
      for (const _ of ['once', 'again']) {
        const response = await admin(api, 'POST', `/${saleId}/${action}`);
        expect([response.statusCode, response.json()]).toEqual([200, expect.objectContaining({ saleId, state })]);
        await effect();
      }
    }
    for (const action of ['pause', 'resume']) expectProblem(await admin(api, 'POST', `/${saleId}/${action}`), 'ended');
  });

  test('close: only what has ended and is settled; then the gate is gone and buyers are told that it ended', async () => {
    const saleId = await putSale(api);
    expectProblem(await admin(api, 'POST', `/${saleId}/close`), 'not_settled');
    const [paid, unpaid] = [await win(api, saleId, 'paid'), await win(api, saleId, 'unpaid')];
    await record(api, paid, unpaid);
    await deliver(api, eventOf(paid));
    await admin(api, 'POST', `/${saleId}/end`);
    expectProblem(await admin(api, 'POST', `/${saleId}/close`), 'not_settled');
    expect((await ask(api, reservationUrl(unpaid), { method: 'DELETE' })).statusCode).toBe(204);
    for (const _ of ['once', 'again']) {
      const closed = await admin(api, 'POST', `/${saleId}/close`);
      expect([closed.statusCode, closed.json()]).toEqual([200, expect.objectContaining({ state: 'closed' })]);
    }
    expect(await api.redis.exists(...gateKeys(saleId))).toBe(0);
    expectProblem(await press(api, saleId, 'paid'), 'ended');
    expect((await ask(api, `/sales/${saleId}`)).json()).toMatchObject({ state: 'closed', unitsLeft: 0 });
    expect((await ask(api, reservationUrl(paid))).json()).toMatchObject({ status: 'PAID' });
    expectProblem(await put(saleId, saleSettings()), 'ended');
    expectProblem(await admin(api, 'POST', `/${saleId}/resume`), 'ended');
  });

  test.each(['pause', 'resume', 'end', 'close'])('%s of an unknown sale: 404', async (action) => {
    expectProblem(await admin(api, 'POST', `/${newId()}/${action}`), 'sale_not_found');
  });

  test('all sales, and one with its figures side by side', async () => {
    const saleId = await putSale(api, { total: 10 });
    const won = await win(api, saleId, 'u', 2);
    const list = (await admin(api, 'GET', '')).json<{ sales: { saleId: string }[] }>();
    expect(list.sales.map((sale) => sale.saleId)).toContain(saleId);
    await record(api, won);
    await deliver(api, eventOf(won));
    expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({
      saleId,
      state: 'open',
      gate: { state: 'open', stock: 8, held: 2, forfeited: 0, total: 10, unqueued: 0 },
      queue: { waiting: expect.any(Number) as number, inFlight: expect.any(Number) as number, deadLetters: 0 },
      ledger: {
        total: 10,
        sold: 2,
        byStatus: { PENDING_PAYMENT: 0, PAID: 2, EXPIRED: 0, CANCELLED: 0, REJECTED: 0, REFUNDED: 0 },
      },
      away: [],
    });
    expectProblem(await admin(api, 'GET', `/${newId()}`), 'sale_not_found');
  });

  test('a gate that is not loaded is null in the figures, and not called away', async () => {
    const saleId = await putSale(api);
    await api.redis.del(...gateKeys(saleId));
    expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({ gate: null, away: [] });
    // Pausing is remembered by the ledger, whose settings the gate has once it is rebuilt.
    expectProblem(await admin(api, 'POST', `/${saleId}/pause`), 'gate_not_loaded');
  });
});

describe('the list of orders', () => {
  type Page = { orders: (Won & { status: string })[]; next: string | null };
  const page = async (saleId: string, query: string): Promise<Page> => {
    const response = await admin(api, 'GET', `/${saleId}/orders${query}`);
    expect(response.statusCode, response.body).toBe(200);
    return response.json<Page>();
  };

  test('a reader who keeps the cursor misses none and sees none twice, while orders become PAID all the time', async () => {
    const saleId = await putSale(api, { total: 60 });
    const won = await Promise.all(Array.from({ length: 60 }, (_, n) => win(api, saleId, `u-${n}`)));
    await record(api, ...won);
    let done = 0;
    const paying = () => done < won.length;
    const payments = Promise.all(
      won.map(async (each, n) => {
        await new Promise((resolve) => setTimeout(resolve, (n % 20) * 10));
        await deliver(api, eventOf(each)).finally(() => (done += 1));
      }),
    );
    const seen: string[] = [];
    let cursor = '';
    const readOn = async () => {
      const { orders, next } = await page(saleId, `?limit=7${cursor}`);
      expect(orders.length).toBeLessThanOrEqual(7);
      expect((next === null) === (orders.length === 0)).toBe(true);
      seen.push(...orders.map(({ reservationId }) => reservationId));
      if (next !== null) cursor = `&after=${next}`;
    };
    await Promise.all([
      payments,
      (async () => {
        while (paying()) await readOn();
      })(),
    ]);
    await expect.poll(async () => (await readOn(), seen.length), { timeout: 15_000 }).toBe(60);
    expect(new Set(seen)).toEqual(new Set(won.map(({ reservationId }) => reservationId)));
  });

  test('of the status that is asked for, PAID when none is; with all that a reservation shows', async () => {
    const saleId = await putSale(api);
    const [paid, unpaid] = [await win(api, saleId, 'paid', 2), await win(api, saleId, 'unpaid')];
    await record(api, paid, unpaid);
    await deliver(api, eventOf(paid));
    const { outcome: _, ...promised } = paid;
    // A page ends before whatever a transaction that is still open may yet show: other tests' are under way.
    await expect.poll(async () => (await page(saleId, '')).orders).toEqual([{ ...promised, status: 'PAID' }]);
    await expect
      .poll(async () => (await page(saleId, '?status=PENDING_PAYMENT')).orders)
      .toMatchObject([{ userId: 'unpaid' }]);
    expect(await page(saleId, '?status=EXPIRED')).toEqual({ orders: [], next: null });
  });

  test.each([
    ...['limit=0', 'limit=-1', 'limit=1001', 'limit=1.5', 'limit=x', 'limit=', 'limit=5&limit=6'],
    ...['status=QUEUED', 'status=paid', 'status=', 'after=', 'after=x', 'after=1', 'page=2'],
    ...[`after=1.${'-'.repeat(36)}`, `after=99999999999999999999.${randomUUID()}`, `after=-1.${randomUUID()}`],
    ...[`after=1.${randomUUID()}&after=2.${randomUUID()}`, 'after=%00'],
  ])('?%s: 400', async (query) => {
    const saleId = await putSale(api);
    expectProblem(await admin(api, 'GET', `/${saleId}/orders?${query}`), 'invalid_request');
  });

  test('the bounds of limit are good, and a cursor from beyond the end is an empty page', async () => {
    const saleId = await putSale(api);
    for (const query of ['limit=1', 'limit=1000', `after=9999999999999999999.${randomUUID()}`]) {
      expect(await page(saleId, `?${query}`)).toEqual({ orders: [], next: null });
    }
    expectProblem(await admin(api, 'GET', `/${newId()}/orders`), 'sale_not_found');
  });
});

/** POST /sales/{saleId}/reserve: every answer, whole. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { expectProblem, gateState, newId, press, putSale, testApi, win, admin, ask, type TestApi } from './api.ts';

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

test('won: 202, the place of the reservation, and all that was promised', async () => {
  const saleId = await putSale(api, { holdSeconds: 77 });
  const response = await press(api, saleId, 'anna+1@example.org', 2);
  expect(response.statusCode).toBe(202);
  expect(response.headers['content-type']).toMatch(/^application\/json/);
  const body = response.json<Record<string, string>>();
  expect(body).toEqual({
    outcome: 'ok',
    reservationId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    saleId,
    userId: 'anna+1@example.org',
    qty: 2,
    amount: 99_800,
    currency: 'EUR',
    reservedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
    expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
  });
  expect(Date.parse(body['expiresAt'] ?? '') - Date.parse(body['reservedAt'] ?? '')).toBe(77_000);
  const found = await ask(api, String(response.headers.location));
  expect(found.json()).toMatchObject({ reservationId: body['reservationId'], status: 'QUEUED' });
});

test('pressed again, with another quantity too: 200, dup, the first reservation, nothing taken', async () => {
  const saleId = await putSale(api);
  const first = await press(api, saleId, 'u', 2);
  const before = await gateState(api, saleId);
  for (const qty of [undefined, 1, 3, 99]) {
    const again = await press(api, saleId, 'u', qty);
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual({ ...first.json<object>(), outcome: 'dup' });
    expect(again.headers.location).toBe(first.headers.location);
  }
  expect(await gateState(api, saleId)).toEqual(before);
});

test('50 presses of one buyer at once take one unit and all name the same reservation', async () => {
  const saleId = await putSale(api);
  const answers = await Promise.all(Array.from({ length: 50 }, () => win(api, saleId, 'u')));
  expect(new Set(answers.map(({ reservationId }) => reservationId)).size).toBe(1);
  expect(answers.filter(({ outcome }) => outcome === 'ok')).toHaveLength(1);
  expect(await gateState(api, saleId)).toMatchObject({ stock: '9', held: '1', buyers: 1 });
});

test('none left: 409 sold_out; what is left still goes to whoever asks for no more than that', async () => {
  const saleId = await putSale(api, { total: 3 });
  await win(api, saleId, 'a', 2);
  expectProblem(await press(api, saleId, 'b', 2), 'sold_out');
  await win(api, saleId, 'c', 1);
  expectProblem(await press(api, saleId, 'd'), 'sold_out');
  expect(await gateState(api, saleId)).toMatchObject({ stock: '0', held: '3' });
});

test('before the start: 409 not_started with startsAt; after the end: 409 ended', async () => {
  const startsAt = new Date(Date.now() + 600_000).toISOString();
  const later = await putSale(api, { startsAt });
  expect(expectProblem(await press(api, later, 'u'), 'not_started')['startsAt']).toBe(startsAt);
  const over = await putSale(api, { endsAt: new Date(Date.now() - 1000).toISOString() });
  expectProblem(await press(api, over, 'u'), 'ended');
});

test('a buyer who holds is told so before, whatever the sale has become', async () => {
  const saleId = await putSale(api, { total: 1 });
  const { reservationId } = await win(api, saleId, 'u');
  for (const action of ['pause', 'resume', 'end']) {
    expect((await admin(api, 'POST', `/${saleId}/${action}`)).statusCode).toBe(200);
    expect((await press(api, saleId, 'u')).json()).toMatchObject({ outcome: 'dup', reservationId });
  }
  expectProblem(await press(api, saleId, 'other'), 'ended');
});

test('paused: 503 with Retry-After, not the same for everybody', async () => {
  const saleId = await putSale(api);
  await admin(api, 'POST', `/${saleId}/pause`);
  const waits = new Set<unknown>();
  for (let n = 0; n < 40; n += 1) {
    const response = await press(api, saleId, `u-${n}`);
    expectProblem(response, 'paused');
    waits.add(response.headers['retry-after']);
  }
  expect(waits.size).toBeGreaterThan(1);
});

test('over the limit per reservation: 422 with the limit, up to the largest number there is', async () => {
  const saleId = await putSale(api, { maxPerReservation: 3 });
  for (const qty of [4, 1e6, Number.MAX_SAFE_INTEGER]) {
    const problem = expectProblem(await press(api, saleId, 'u', qty), 'qty_over_limit');
    expect(problem['maxPerReservation']).toBe(3);
  }
  expect(await gateState(api, saleId)).toEqual({ stock: '10', held: '0', version: '0', buyers: 0 });
});

test('unknown sale: 404; one that another process created a moment ago is found', async () => {
  expectProblem(await press(api, newId(), 'u'), 'sale_not_found');
  const other = await testApi({ ...stores.env, SALES_REFRESH_MS: '60000' });
  try {
    const saleId = await putSale(api);
    await expect.poll(async () => (await press(other, saleId, 'u')).statusCode, { timeout: 15_000 }).toBe(202);
  } finally {
    await other.close();
  }
});

test.each(['stock', 'sale', 'holds', 'buyers'] as const)(
  'a gate without its %s is 503 gate_not_loaded, for holders too; never ok, never sold out',
  async (lost) => {
    const saleId = await putSale(api);
    await win(api, saleId, 'holder');
    const [stock, buyers, holds, , sale] = gateKeys(saleId);
    await api.redis.del({ stock, buyers, holds, sale }[lost]);
    expectProblem(await press(api, saleId, 'other'), 'gate_not_loaded');
    expectProblem(await press(api, saleId, 'holder'), 'gate_not_loaded');
  },
);

test('a key of the gate that something else has written over is 503 gate_unavailable', async () => {
  const saleId = await putSale(api);
  const [stock] = gateKeys(saleId);
  await api.redis.del(stock);
  await api.redis.lpush(stock, 'x');
  expectProblem(await press(api, saleId, 'u'), 'gate_unavailable');
});

test('the quantity is 1 when it is not said', async () => {
  const saleId = await putSale(api);
  expect(await win(api, saleId, 'u')).toMatchObject({ qty: 1, amount: 49_900 });
});

test('a userId may be any visible ASCII character, and 128 of them', async () => {
  const saleId = await putSale(api, { total: 1000 });
  const ids = Array.from({ length: 0x7f - 0x21 }, (_, n) => String.fromCharCode(0x21 + n));
  for (const userId of [...ids, '"|{}%/?#&=+', 'u'.repeat(128)]) {
    const won = await press(api, saleId, userId);
    expect(won.statusCode, userId).toBe(202);
    expect((await ask(api, String(won.headers.location))).json()).toMatchObject({ userId, status: 'QUEUED' });
  }
});

test('too many at once: 503 overloaded, at once, and the others get theirs', async () => {
  const small = await testApi({ ...stores.env, GATE_PENDING: '5', GATE_BATCH: '1' });
  try {
    const saleId = await putSale(small, { total: 100 });
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => press(small, saleId, `u-${n}`)));
    const refused = answers.filter(({ statusCode }) => statusCode === 503);
    expect(refused.length).toBeGreaterThan(0);
    for (const response of refused) expectProblem(response, 'overloaded');
    const won = answers.filter(({ statusCode }) => statusCode === 202);
    expect(won.length).toBeGreaterThanOrEqual(5);
    expect(won.length + refused.length).toBe(50);
    expect(await gateState(small, saleId)).toMatchObject({ held: String(won.length) });
  } finally {
    await small.close();
  }
});

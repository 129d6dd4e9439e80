/** "Sold out" says whether a unit may still come back, and when: never "no" while one can. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, deliver, eventOf, expectProblem, newId, press, putSale, record, reservationUrl } from './api.ts';
import { testApi, win, type TestApi, type Won } from './api.ts';

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

/** What somebody who comes too late is told, once the ledger was asked. */
async function told(saleId: string): Promise<{ mayReturn: unknown; after: number }> {
  expectProblem(await press(api, saleId, newId()), 'sold_out');
  await api.directory.mayReturn.refresh();
  const answer = await press(api, saleId, newId());
  const { mayReturn } = expectProblem(answer, 'sold_out');
  return { mayReturn, after: Number(answer.headers['retry-after']) };
}
async function soldOutSale(units: number, settings = {}): Promise<{ saleId: string; winners: Won[] }> {
  const saleId = await putSale(api, { total: units, ...settings });
  const winners: Won[] = [];
  for (let n = 0; n < units; n += 1) winners.push(await win(api, saleId, `w-${n}`));
  return { saleId, winners };
}
const pay = async (won: Won) => expect((await deliver(api, eventOf(won))).json()).toMatchObject({ outcome: 'paid' });

test('before anything is known of it: maybe, when a hold of now would end', async () => {
  const { saleId } = await soldOutSale(1, { holdSeconds: 600 });
  const answer = await press(api, saleId, 'late');
  expect(expectProblem(answer, 'sold_out')).toMatchObject({ mayReturn: true });
  const after = Number(answer.headers['retry-after']);
  expect(after).toBeGreaterThanOrEqual(600);
  expect(after).toBeLessThan(600 + 8);
});

test('while something is unpaid: true, and the next deadline, spread over some seconds', async () => {
  const { saleId, winners } = await soldOutSale(1, { holdSeconds: 3000 });
  await putSale(api, { total: 2, holdSeconds: 60 }, saleId);
  winners.push(await win(api, saleId, 'second')); // its deadline comes first
  await record(api, ...winners);
  const { mayReturn } = await told(saleId);
  expect(mayReturn).toBe(true);
  const seen = new Set<number>();
  for (let n = 0; n < 8; n += 1) seen.add((await told(saleId)).after);
  expect(Math.max(...seen)).toBeLessThanOrEqual(60 + 1 + 8);
  expect(Math.min(...seen)).toBeGreaterThanOrEqual(1);
  expect(seen.size).toBeGreaterThan(1);
  await pay(winners[1] as Won);
  const later = await told(saleId);
  expect(later.mayReturn).toBe(true);
  expect(later.after).toBeGreaterThan(1000);
});

test('once every unit is paid: false for good, without a Retry-After; a larger total sells again', async () => {
  const { saleId, winners } = await soldOutSale(2);
  await record(api, ...winners);
  await pay(winners[0] as Won);
  expect((await told(saleId)).mayReturn).toBe(true);
  await pay(winners[1] as Won);
  expect(await told(saleId)).toEqual({ mayReturn: false, after: Number.NaN });
  await putSale(api, { total: 3 }, saleId);
  await win(api, saleId, 'another');
  expect((await told(saleId)).mayReturn).toBe(true);
});

test('true while a hold is still in the queue, though all that the ledger knows of is paid', async () => {
  const { saleId, winners } = await soldOutSale(2);
  await record(api, ...winners);
  await pay(winners[0] as Won);
  const url = reservationUrl(winners[1] as Won);
  expect((await ask(api, url, { method: 'DELETE' })).statusCode).toBe(204);
  const next = await win(api, saleId, 'next');
  expect((await told(saleId)).mayReturn).toBe(true);
  await record(api, next);
  await pay(next);
  expect((await told(saleId)).mayReturn).toBe(false);
});

test('true while units are forfeited: a full pass may give them to the stock', async () => {
  const { saleId, winners } = await soldOutSale(2);
  await record(api, winners[0] as Won);
  await pay(winners[0] as Won);
  await api.wired.stores.gate.forfeit(saleId, [winners[1] as Won]);
  expect((await told(saleId)).mayReturn).toBe(true);
});

test('the process learns it by itself', async () => {
  const { saleId, winners } = await soldOutSale(1);
  await record(api, ...winners);
  await pay(winners[0] as Won);
  const answered = async () => (await press(api, saleId, newId())).json<{ mayReturn: boolean }>().mayReturn;
  await expect.poll(answered, { timeout: 15_000 }).toBe(false);
});

test('HIDE_UNITS_LEFT: how many are left is not told', async () => {
  const discreet = await testApi({ ...stores.env, HIDE_UNITS_LEFT: 'true' });
  try {
    const saleId = await putSale(discreet);
    const shown = (await ask(discreet, `/sales/${saleId}`)).json<Record<string, unknown>>();
    expect(shown).toMatchObject({ saleId, state: 'open', total: 10 });
    expect(shown).not.toHaveProperty('unitsLeft');
    expect((await ask(api, `/sales/${await putSale(api)}`)).json()).toMatchObject({ unitsLeft: 10 });
  } finally {
    await discreet.close();
  }
});

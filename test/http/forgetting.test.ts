/** A process outlives its sales: what it remembers of one that is over goes with the next reading of the list. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { testApi, expectProblem, newId, press, putSale, win, type TestApi } from './api.ts';

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, LATCH_MS: '60000' });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const knows = (saleId: string) => api.wired.stores.gate.refuses(saleId, 'somebody', 1);

async function latchedSale(): Promise<string> {
  const saleId = await putSale(api, { total: 1 });
  await win(api, saleId, 'winner');
  await expect
    .poll(async () => {
      expectProblem(await press(api, saleId, newId()), 'sold_out');
      return knows(saleId);
    })
    .toBe(true);
  return saleId;
}

test('a closed sale is forgotten, those beside it are not', async () => {
  const [over, living] = [await latchedSale(), await latchedSale()];
  await api.directory.refresh();
  expect([knows(over), knows(living)]).toEqual([true, true]);
  const known = api.directory.mayReturn.soldOut({ saleId: living, holdSeconds: 1 });
  const figures = [over, living].map((saleId) => api.directory.figures(saleId, Infinity));
  await Promise.all(figures);

  await api.db.query("update sales set state = 'closed' where sale_id = $1", [over]);
  await api.directory.refresh();
  expect([knows(over), knows(living)]).toEqual([false, true]);
  expect(api.directory.mayReturn.soldOut({ saleId: living, holdSeconds: 1 })).toBe(known);
  expect(api.directory.figures(living, Infinity)).toBe(figures[1]);
  expect(api.directory.figures(over, Infinity)).not.toBe(figures[0]);
  expectProblem(await press(api, over, newId()), 'ended');
});

test('who is being asked for is served, whatever is forgotten meanwhile', async () => {
  const saleId = await putSale(api, { total: 3 });
  const { gate } = api.wired.stores;
  const presses = Array.from({ length: 5 }, (_, n) =>
    gate.reserve(saleId, { userId: `u${n}`, reservationId: randomUUID(), qty: 1 }, performance.now() + 10_000),
  );
  let settled = 0;
  for (const each of presses) void each.then(() => (settled += 1));
  gate.forgetAllBut(new Set());
  await gate.drained(); // nobody is left behind when the process ends
  expect(settled).toBe(5);
  const outcomes = (await Promise.all(presses)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['ok', 'ok', 'ok', 'sold_out', 'sold_out']);
});

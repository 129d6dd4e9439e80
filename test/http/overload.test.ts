/** A process that is behind says so, by name, and to those alone whom it would have to do something for. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, expectProblem, newId, press, putSale, reservationUrl, testApi, win, type TestApi } from './api.ts';

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, MAX_EVENT_LOOP_DELAY_MS: '50', LATCH_MS: '60000' });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** As a computation in the wrong place would; then one turn, in which it is noticed. */
async function holdUpTheLoop(): Promise<void> {
  for (const end = performance.now() + 700; performance.now() < end;);
  await setImmediate();
}

test('503 overloaded for what costs something, until it has caught up; refusals and health go on', async () => {
  const saleId = await putSale(api, { total: 2 });
  const soldOut = await putSale(api, { total: 1 });
  const won = await win(api, saleId, 'ann');
  await win(api, soldOut, 'ann');
  await expect
    .poll(async () => {
      await press(api, soldOut, newId());
      return api.wired.stores.gate.refuses(soldOut, 'zoe', 1);
    })
    .toBe(true);
  await expect
    .poll(
      async () => {
        await holdUpTheLoop();
        return (await press(api, saleId, 'bob')).statusCode;
      },
      { timeout: 15_000 },
    )
    .toBe(503);
  await holdUpTheLoop();
  expectProblem(await press(api, saleId, 'bob'), 'overloaded');
  expectProblem(await ask(api, reservationUrl(won)), 'overloaded');
  expectProblem(await press(api, soldOut, 'zoe'), 'sold_out');
  expect((await ask(api, '/livez')).statusCode).toBe(200);
  await holdUpTheLoop();
  expect((await ask(api, '/readyz')).statusCode).toBe(200);
  // Nobody's unit was taken by it, and it passes.
  await expect.poll(async () => (await press(api, saleId, 'bob')).statusCode, { timeout: 15_000 }).toBe(202);
});

test('0 never does', async () => {
  const calm = await testApi({ ...stores.env, MAX_EVENT_LOOP_DELAY_MS: '0' });
  try {
    const saleId = await putSale(calm);
    for (const name of ['a', 'b', 'c']) {
      await holdUpTheLoop();
      expect((await press(calm, saleId, name)).statusCode).toBe(202);
    }
  } finally {
    await calm.close();
  }
});

/** A process that is behind says so, by name, and to those alone whom it would have to do something for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, expectProblem, newId, press, putSale, reservationUrl, testApi, win, type TestApi } from './api.ts';

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  // A latch that is over at once: every refusal needs a look.
  api = await testApi({ ...stores.env, MAX_EVENT_LOOP_DELAY_MS: '50', GATE_BATCH: '1', LATCH_MS: '1' });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** As a computation in the wrong place would; then a turn, in which it is noticed. */
async function holdUpTheLoop(): Promise<void> {
  for (const end = performance.now() + 300; performance.now() < end;);
  await sleep(1);
}
const statuses = (answers: { statusCode: number }[]) => answers.map(({ statusCode }) => statusCode);
const crowd = (saleId: string) => Promise.all(Array.from({ length: 20 }, () => press(api, saleId, newId())));

test('of a crowd that comes while it is behind a batch is let in, the rest told so, and nobody’s unit is lost', async () => {
  const saleId = await putSale(api, { total: 1000 });
  let seen: number[] = [];
  await expect
    .poll(
      async () => {
        await holdUpTheLoop();
        seen = statuses(await crowd(saleId));
        return seen.includes(503);
      },
      { timeout: 15_000 },
    )
    .toBe(true);
  expect(seen).toContain(202);
  expect([...new Set(seen)].sort()).toEqual([202, 503]);
  await holdUpTheLoop();
  for (const answer of (await crowd(saleId)).filter(({ statusCode }) => statusCode === 503)) {
    expectProblem(answer, 'overloaded');
  }
  // It passes.
  await expect.poll(async () => statuses(await crowd(saleId)), { timeout: 15_000 }).not.toContain(503);
});

test('what asks the ledger is told so; health is not', async () => {
  const won = await win(api, await putSale(api), 'ann');
  const look = async () => {
    await holdUpTheLoop();
    return ask(api, reservationUrl(won));
  };
  await expect.poll(async () => (await look()).statusCode, { timeout: 15_000 }).toBe(503);
  for (const path of ['/livez', '/readyz']) {
    await holdUpTheLoop();
    expect((await ask(api, path)).statusCode).toBe(200);
  }
});

test('a process that is always behind still knows that a sale is sold out', async () => {
  const saleId = await putSale(api, { total: 1 });
  await win(api, saleId, 'ann');
  // Until the latch has its holders.
  await expect
    .poll(
      async () => {
        await press(api, saleId, newId());
        return api.wired.stores.gate.refuses(saleId, 'zoe', 1);
      },
      { timeout: 15_000, interval: 1 },
    )
    .toBe(true);
  for (let n = 0; n < 5; n += 1) {
    await holdUpTheLoop();
    for (const answer of await crowd(saleId)) expectProblem(answer, 'sold_out');
  }
});

test('0, the default, never does', async () => {
  const calm = await testApi({ ...stores.env, GATE_BATCH: '1' });
  try {
    const saleId = await putSale(calm, { total: 100 });
    await holdUpTheLoop();
    const answers = await Promise.all(Array.from({ length: 20 }, () => press(calm, saleId, newId())));
    expect(new Set(statuses(answers))).toEqual(new Set([202]));
  } finally {
    await calm.close();
  }
});

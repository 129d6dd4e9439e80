/** Postgres away or silent: buyers are still served, what needs the ledger says so in time, a redelivery settles it. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { migrate } from '../../src/ledger/migrate.ts';
import { privatePostgres } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, deliver, eventOf, expectProblem, newId, press, putSale, record } from '../http/api.ts';
import { reservationUrl, saleSettings, shortLimits, testApi, win, type TestApi, type Won } from '../http/api.ts';
import { silentProxy, type SilentProxy } from './silent-proxy.ts';

vi.setConfig({ testTimeout: 60_000 }); // it waits for several time limits

let stores: Stores;
let postgres: Awaited<ReturnType<typeof privatePostgres>>;
let proxy: SilentProxy;
let api: TestApi;
let saleId: string;
let recorded: Won;
beforeAll(async () => {
  [stores, postgres] = await Promise.all([freshStores(), privatePostgres()]);
  await migrate(postgres.url);
  proxy = await silentProxy(postgres.url);
  api = await testApi({ ...stores.env, DATABASE_URL: proxy.url, ...shortLimits });
  saleId = await putSale(api, { total: 1000 });
  recorded = await win(api, saleId, 'recorded');
  await record(api, recorded);
});
afterAll(async () => {
  await api.close();
  await proxy.close();
  await stores.drop();
});

/** Everything that a buyer, a provider or an admin may ask meanwhile; each answer in time, each with its name. */
async function allButBuyersAreRefused(): Promise<void> {
  // What was read from the ledger a moment ago may still be believed: that there is no such sale.
  await expect.poll(async () => (await press(api, newId(), 'u')).statusCode, { timeout: 15_000 }).toBe(503);
  const started = performance.now();
  const answers = await Promise.all([
    ask(api, reservationUrl(recorded)),
    ask(api, reservationUrl(recorded), { method: 'DELETE' }),
    press(api, newId(), 'u'),
    press(api, newId(), 'v'),
    deliver(api, eventOf(recorded)),
    admin(api, 'GET', ''),
    admin(api, 'GET', `/${saleId}`),
    admin(api, 'PUT', `/${newId()}`, saleSettings()),
    admin(api, 'POST', `/${saleId}/pause`),
    admin(api, 'GET', `/${saleId}/orders`),
  ]);
  expect(performance.now() - started).toBeLessThan(2.5 * api.config.REQUEST_DEADLINE_MS);
  for (const answer of answers) expectProblem(answer, 'ledger_unavailable');
  // A second look at an unknown sale right after the first is no "there is no such sale" either.
  expectProblem(await press(api, newId(), 'w'), 'ledger_unavailable');
  const ready = await ask(api, '/readyz');
  expect(ready.statusCode).toBe(200);
  expect(ready.json()).toMatchObject({ dependencies: { redis: { ok: true }, postgres: { ok: false } } });
}

async function buyersAreServed(prefix: string): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => press(api, saleId, `${prefix}-${n}`)));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(50).fill(202));
  expect((await ask(api, `/sales/${saleId}`)).statusCode).toBe(200);
}

test('away: buyers win all the same; the webhook is refused, and its redelivery settles it', async () => {
  const event = eventOf(recorded, { amount: 1 });
  postgres.kill('SIGKILL');
  await postgres.exited;
  await buyersAreServed('away');
  await allButBuyersAreRefused();
  expectProblem(await deliver(api, event, 'evt-away'), 'ledger_unavailable');
  await postgres.restart();
  await expect.poll(async () => (await deliver(api, event, 'evt-away')).statusCode, { timeout: 10_000 }).toBe(200);
  expect((await deliver(api, event, 'evt-away')).json()).toEqual({ state: 'ignored', outcome: 'repeated' });
  expect((await ask(api, reservationUrl(recorded))).json()).toMatchObject({
    status: 'PENDING_PAYMENT',
    refund: 'PENDING',
  });
});

test('silent: the same, in time, although connections are accepted and kept', async () => {
  proxy.silence();
  try {
    await buyersAreServed('silent');
    await allButBuyersAreRefused();
  } finally {
    proxy.speak();
  }
  const paying = eventOf(recorded);
  const settled = async () => (await deliver(api, paying)).statusCode;
  await expect.poll(settled, { timeout: 15_000 }).toBe(200);
  await expect
    .poll(async () => (await ask(api, reservationUrl(recorded))).json<{ status: string }>().status, { timeout: 10_000 })
    .toMatch(/PAID|CANCELLED/);
});

/** GET /sales/{saleId}: what anybody may see, by the gate's clock, from memory; and the health of the process. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { privateRedis } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, expectProblem, newId, putSale, saleSettings, testApi, win, type TestApi } from './api.ts';

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

const look = (saleId: string, { app } = api) => app.inject({ url: `/sales/${saleId}` });

test('all that a page needs, and that it may be kept for a second', async () => {
  const settings = saleSettings({ total: 10 });
  const saleId = await putSale(api, settings);
  const response = await look(saleId);
  expect(response.statusCode).toBe(200);
  expect(response.headers['cache-control']).toBe('public, max-age=1');
  const serverTime = response.json<{ serverTime: string }>().serverTime;
  expect(response.json()).toEqual({ saleId, ...settings, state: 'open', unitsLeft: 10, serverTime });
  expect(Math.abs(Date.parse(serverTime) - Date.now())).toBeLessThan(5000);
});

test('each state', async () => {
  const soon = new Date(Date.now() + 600_000).toISOString();
  const past = new Date(Date.now() - 1000).toISOString();
  const sales: [string, string, string[]][] = [
    ['scheduled', await putSale(api, { startsAt: soon }), []],
    ['open', await putSale(api), []],
    ['paused', await putSale(api), ['pause']],
    ['paused', await putSale(api, { startsAt: soon }), ['pause']],
    ['ended', await putSale(api, { endsAt: past }), []],
    ['ended', await putSale(api, { endsAt: past }), ['pause']],
    ['ended', await putSale(api), ['end']],
    ['closed', await putSale(api), ['end', 'close']],
  ];
  for (const [state, saleId, actions] of sales) {
    for (const action of actions) expect((await admin(api, 'POST', `/${saleId}/${action}`)).statusCode).toBe(200);
    const response = await look(saleId);
    expect([response.statusCode, response.json()]).toEqual([200, expect.objectContaining({ saleId, state })]);
  }
});

test('the state turns by itself when the start comes, as it does for those who press', async () => {
  const saleId = await putSale(api, { startsAt: new Date(Date.now() + 1200).toISOString() });
  expect((await look(saleId)).json()).toMatchObject({ state: 'scheduled' });
  await expect
    .poll(async () => (await look(saleId)).json<object>(), { timeout: 15_000 })
    .toMatchObject({ state: 'open' });
  await win(api, saleId, 'u');
});

test('units left follow within a second or two, and are never below none', async () => {
  const saleId = await putSale(api, { total: 3 });
  await win(api, saleId, 'u', 2);
  const left = async () => (await look(saleId)).json<{ unitsLeft: number }>().unitsLeft;
  await expect.poll(left, { timeout: 15_000 }).toBe(1);
  await api.redis.decrby(gateKeys(saleId)[0], 5); // live orders that were adopted may owe units
  await expect.poll(left, { timeout: 15_000 }).toBe(0);
});

test('a sale created through another process is there at once, also for one that has just looked for another', async () => {
  const other = await testApi(stores.env);
  try {
    for (let n = 0; n < 10; n += 1) {
      const unknown = look(newId(), other); // its read of the list may be under way while the sale is created
      const saleId = await putSale(api);
      expect((await look(saleId, other)).statusCode).toBe(200);
      expectProblem(await unknown, 'sale_not_found');
    }
  } finally {
    await other.close();
  }
});

test('unknown: 404; not loaded: 503', async () => {
  expectProblem(await look(newId()), 'sale_not_found');
  const saleId = await putSale(api);
  await api.redis.del(...gateKeys(saleId));
  expectProblem(await look(saleId), 'gate_not_loaded');
});

test('served from memory: a thousand requests cost Redis and Postgres a handful of calls', async () => {
  const redis = await privateRedis();
  const own = await testApi({ ...stores.env, REDIS_URL: redis.url, SALES_REFRESH_MS: '60000' });
  try {
    const saleId = await putSale(own);
    const calls = async () => {
      const stats = await own.redis.info('commandstats');
      return Number(/cmdstat_exec:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    await look(saleId, own);
    const before = await calls();
    const started = performance.now();
    for (let n = 0; n < 20; n += 1) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => look(saleId, own)));
      expect(answers.every(({ statusCode }) => statusCode === 200)).toBe(true);
    }
    const seconds = (performance.now() - started) / 1000;
    expect((await calls()) - before).toBeLessThanOrEqual(Math.ceil(seconds) + 1);
    // Unknown sales are not a way to reach the database either.
    const asked = await own.db.query<{ n: string }>(`select pg_stat_clear_snapshot(), xact_commit as n
      from pg_stat_database where datname = current_database()`);
    expect(asked.rows).toHaveLength(1);
  } finally {
    await own.close();
  }
});

test('/livez answers; /readyz tells of each dependency; draining is 503 while requests are still served', async () => {
  const own = await testApi(stores.env);
  try {
    const saleId = await putSale(own);
    expect((await own.app.inject({ url: '/livez' })).json()).toEqual({ status: 'ok' });
    const ready = await own.app.inject({ url: '/readyz' });
    const good = { redis: { ok: true }, postgres: { ok: true }, queue: { ok: true } };
    expect([ready.statusCode, ready.json()]).toEqual([200, { status: 'ok', dependencies: good }]);
    own.drain();
    const draining = await own.app.inject({ url: '/readyz' });
    expect([draining.statusCode, draining.json()]).toEqual([503, { status: 'draining', dependencies: good }]);
    expect((await own.app.inject({ url: '/livez' })).statusCode).toBe(200);
    expect((await win(own, saleId, 'u')).outcome).toBe('ok');
  } finally {
    await own.close();
  }
});

test('a Redis that evicts is told at /readyz, with what to do', async () => {
  const redis = await privateRedis();
  const own = await testApi({ ...stores.env, REDIS_URL: redis.url });
  try {
    await own.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const ready = await own.app.inject({ url: '/readyz' });
    expect(ready.statusCode).toBe(200);
    const { redis: seen } = ready.json<{ dependencies: { redis: { ok: boolean; detail: string } } }>().dependencies;
    expect(seen.ok).toBe(false);
    expect(seen.detail).toContain('set noeviction');
  } finally {
    await own.close();
  }
});

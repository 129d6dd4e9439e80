/** GET /sales/{saleId}/events over real connections: what GET tells, at once and when it changes, from any process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Listener } from '../events/bare.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, putSale, saleSettings, testApi, win, type TestApi } from './api.ts';

vi.setConfig({ testTimeout: 60_000 });
const PATIENCE = { timeout: 20_000, interval: 20 };
const QUICK = { EVENT_POLL_MS: '50', SALES_REFRESH_MS: '100' };

let stores: Stores;
let api: TestApi;
/** Another process on the same stores. */
let other: TestApi;
const listeners: Listener[] = [];
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, ...QUICK, CORS_ORIGINS: 'https://shop.example' });
  other = await testApi({ ...stores.env, ...QUICK });
});
afterEach(() => {
  for (const { socket } of listeners.splice(0)) socket.destroy();
});
afterAll(async () => {
  await Promise.all([api.close(), other.close()]);
  await stores.drop();
});

async function listen(at: TestApi, saleId: string, options: ConstructorParameters<typeof Listener>[1] = {}) {
  const listener = new Listener(`${await at.url()}/sales/${saleId}/events`, options);
  listeners.push(listener);
  return listener;
}
const heard = (listener: Listener, count: number) => expect.poll(() => listener.events.length, PATIENCE).toBe(count);
const sale = (listener: Listener, n: number) =>
  JSON.parse(listener.events.at(n)?.data ?? '') as Record<string, unknown>;
const answered = (listener: Listener) => expect.poll(() => listener.status, PATIENCE).toBeGreaterThan(0);

test('tells exactly what GET tells, and again when it has changed', async () => {
  const saleId = await putSale(api);
  const first = await listen(api, saleId, { headers: { origin: 'https://shop.example' } });
  await heard(first, 1);
  expect(first.head.toLowerCase()).toContain('access-control-allow-origin: https://shop.example');
  const [event] = first.events;
  expect(event?.event).toBe('sale');
  const { body } = await ask(api, `/sales/${saleId}`);
  const timeless = (text = '') => text.replace(/"serverTime":"[^"]+"/, '');
  expect(timeless(event?.data)).toBe(timeless(body));

  await win(api, saleId, 'ann');
  await heard(first, 2);
  expect(sale(first, 1)).toMatchObject({ unitsLeft: 9, state: 'open' });
  await admin(api, 'POST', `/${saleId}/pause`);
  await heard(first, 3);
  expect(sale(first, 2)).toMatchObject({ state: 'paused' });
});

test('however many listen, the gate is asked once per tick', async () => {
  const saleId = await putSale(api);
  const asked = vi.spyOn(api.wired.stores.gate, 'figures');
  const all = await Promise.all(Array.from({ length: 50 }, () => listen(api, saleId)));
  for (const each of all) await heard(each, 1);
  asked.mockClear();
  const begun = performance.now();
  await sleep(500);
  // At most one per EVENT_POLL_MS, by whatever clock this machine is on: the interval is counted from the last one's end.
  const most = (performance.now() - begun) / 50 + 1;
  expect(asked.mock.calls.length).toBeGreaterThan(0);
  expect(asked.mock.calls.length).toBeLessThanOrEqual(most);
  asked.mockRestore();
});

test('whoever comes back through another process is told nothing twice, and nothing is left out', async () => {
  const saleId = await putSale(api);
  await other.directory.refresh();
  const first = await listen(api, saleId);
  await heard(first, 1);
  const lastEventId = first.events[0]?.id ?? '';
  first.socket.destroy();
  const back = await listen(other, saleId, { lastEventId });
  const fresh = await listen(other, saleId);
  await heard(fresh, 1);
  expect(fresh.events[0]?.id).toBe(lastEventId);
  await win(api, saleId, 'ann');
  await heard(fresh, 2);
  await heard(back, 1);
  expect(back.events[0]).toEqual(fresh.events[1]);
  const late = await listen(other, saleId, { lastEventId });
  await heard(late, 1);
  expect(sale(late, 0)).toMatchObject({ unitsLeft: 9 });
});

test('with HIDE_UNITS_LEFT it does not tell of units, not even that their number has changed', async () => {
  const shy = await testApi({ ...stores.env, ...QUICK, HIDE_UNITS_LEFT: 'true' });
  const saleId = await putSale(shy);
  const first = await listen(shy, saleId);
  await heard(first, 1);
  await win(shy, saleId, 'ann');
  await sleep(300);
  await admin(shy, 'POST', `/${saleId}/pause`);
  await heard(first, 2);
  expect(first.events.map(({ data }) => data.includes('unitsLeft'))).toEqual([false, false]);
  await shy.close();
});

test('ends with a sale that is closed for good, and is not begun again', async () => {
  const saleId = await putSale(api);
  const first = await listen(api, saleId);
  await heard(first, 1);
  await admin(api, 'POST', `/${saleId}/end`);
  await heard(first, 2);
  expect((await admin(api, 'POST', `/${saleId}/close`)).statusCode).toBe(200);
  await heard(first, 3);
  await expect.poll(() => first.done, PATIENCE).toBe(true);
  expect(sale(first, 2)).toMatchObject({ state: 'closed' });
  await other.directory.refresh();
  const back = await listen(other, saleId, { lastEventId: first.events[2]?.id ?? '' });
  await answered(back);
  expect(back.status).toBe(204);
});

test('a gate that is away is told, the stream stays, and goes on', async () => {
  const saleId = await putSale(api);
  const first = await listen(api, saleId);
  await heard(first, 1);
  await api.redis.rename(gateKeys(saleId)[4], `${gateKeys(saleId)[4]}:away`);
  await heard(first, 2);
  expect(first.events[1]).toMatchObject({ event: 'unavailable', data: '{"code":"gate_not_loaded"}' });
  const meanwhile = await listen(api, saleId);
  await heard(meanwhile, 1);
  expect(meanwhile.events[0]?.event).toBe('unavailable');
  await api.redis.rename(`${gateKeys(saleId)[4]}:away`, gateKeys(saleId)[4]);
  await heard(first, 3);
  await heard(meanwhile, 2);
  expect(first.events[2]?.id).toBe(first.events[0]?.id);
});

test('no sale, no stream: 404; HEAD has no end and is not allowed', async () => {
  const listener = await listen(api, 'no-such-sale');
  await answered(listener);
  expect(listener.status).toBe(404);
  const head = await api.app.inject({ method: 'HEAD', url: '/sales/x/events' });
  expect(head.statusCode).toBe(405);
});

test('beyond EVENT_STREAMS_MAX 503 overloaded, and the process ends at once with streams open', async () => {
  const small = await testApi({ ...stores.env, ...QUICK, EVENT_STREAMS_MAX: '3' });
  const saleId = await putSale(small, saleSettings());
  const all = await Promise.all([1, 2, 3].map(() => listen(small, saleId)));
  for (const each of all) await heard(each, 1);
  const fourth = await listen(small, saleId);
  await answered(fourth);
  expect(fourth.status).toBe(503);
  const begun = performance.now();
  await small.close();
  expect(performance.now() - begun).toBeLessThan(15_000); // they would stay for ever; KEEP_ALIVE_MS is 75 s
  await expect.poll(() => all.every(({ done }) => done), PATIENCE).toBe(true);
});

/** A reservation's event stream over real connections: from the queue to its end, for its buyer alone, read together. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Listener } from '../events/bare.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, asShop, deliver, eventOf, putSale, record, reservationUrl, testApi, win } from './api.ts';
import type { TestApi, Won } from './api.ts';
import { bearing, HS256, tokenOf } from './tokens.ts';

vi.setConfig({ testTimeout: 60_000 });
const PATIENCE = { timeout: 20_000, interval: 20 };

let stores: Stores;
let api: TestApi;
const listeners: Listener[] = [];
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, EVENT_POLL_MS: '50' });
});
afterEach(() => {
  for (const { socket } of listeners.splice(0)) socket.destroy();
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const eventsUrl = (won: Pick<Won, 'saleId' | 'reservationId' | 'userId'>) =>
  reservationUrl(won).replace('?', '/events?');
type How = { at?: TestApi; lastEventId?: string; headers?: Record<string, string> };
async function listen(won: Won, { at = api, lastEventId = '', headers = asShop }: How = {}) {
  const listener = new Listener(`${await at.url()}${eventsUrl(won)}`, { lastEventId, headers });
  listeners.push(listener);
  return listener;
}
const heard = (listener: Listener, count: number) => expect.poll(() => listener.events.length, PATIENCE).toBe(count);
const statusesOf = ({ events }: Listener) => events.map(({ data }) => (JSON.parse(data) as { status: string }).status);
const answered = (listener: Listener) => expect.poll(() => listener.status, PATIENCE).toBeGreaterThan(0);

test('tells what GET tells, from the queue until it is paid; then it ends, and is not begun again', async () => {
  const won = await win(api, await putSale(api), 'ann');
  const first = await listen(won);
  await heard(first, 1);
  expect(first.events[0]).toMatchObject({ event: 'reservation' });
  expect(first.events[0]?.data).toBe((await ask(api, reservationUrl(won))).body);
  expect(first.head.toLowerCase()).toMatch(/x-request-id: /);
  await record(api, won);
  await heard(first, 2);
  expect(first.done).toBe(false);
  await deliver(api, eventOf(won));
  await heard(first, 3);
  expect(statusesOf(first)).toEqual(['QUEUED', 'PENDING_PAYMENT', 'PAID']);
  expect(first.events[2]?.data).toBe((await ask(api, reservationUrl(won))).body);
  await expect.poll(() => first.done, PATIENCE).toBe(true);

  const back = await listen(won, { lastEventId: first.events[2]?.id ?? '' });
  await answered(back);
  expect(back.status).toBe(204);
  const late = await listen(won, { lastEventId: first.events[1]?.id ?? '' });
  await heard(late, 1);
  expect(statusesOf(late)).toEqual(['PAID']);
});

test('one that is given up, or expires, ends too', async () => {
  const saleId = await putSale(api);
  const [given, expiring] = [await win(api, saleId, 'bob'), await win(api, saleId, 'cid')];
  await record(api, given, expiring);
  const [first, second] = [await listen(given), await listen(expiring)];
  await heard(first, 1);
  await heard(second, 1);
  await ask(api, reservationUrl(given), { method: 'DELETE' });
  await api.db.query(`update sale_orders set status = 'EXPIRED' where reservation_id = $1`, [expiring.reservationId]);
  await heard(first, 2);
  await heard(second, 2);
  await expect.poll(() => first.done && second.done, PATIENCE).toBe(true);
  expect([statusesOf(first)[1], statusesOf(second)[1]]).toEqual(['CANCELLED', 'EXPIRED']);
});

test('all that are listened to are read by one statement per tick, and the gate about those in the queue alone', async () => {
  const saleId = await putSale(api);
  const all: Won[] = [];
  for (let n = 0; n < 6; n += 1) all.push(await win(api, saleId, `buyer-${n}`));
  const streams = await Promise.all([...all, ...all].map((won) => listen(won)));
  for (const each of streams) await heard(each, 1);
  const statements = vi.spyOn(api.wired.stores.pool, 'query');
  const asked = vi.spyOn(api.wired.stores.gate, 'holdsOf');
  const reads = () =>
    statements.mock.calls
      .map((args: unknown[]) => args as [{ name?: string; values?: unknown[][] }, unknown[][]?])
      .filter(([statement]) => statement.name === 'get-orders')
      .map(([statement, values]) => (statement.values ?? values ?? [])[0]?.length);
  await expect.poll(() => reads().length, PATIENCE).toBeGreaterThan(3);
  expect(new Set(reads())).toEqual(new Set([6]));
  expect(asked.mock.calls.every(([, userIds]) => userIds.length === 6)).toBe(true);
  await record(api, ...all);
  for (const each of streams) await heard(each, 2);
  asked.mockClear();
  statements.mockClear();
  await expect.poll(() => reads().length, PATIENCE).toBeGreaterThan(3);
  expect(asked).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

test('nobody listens to another buyer’s, nor without a token', async () => {
  const won = await win(api, await putSale(api), 'ann');
  await record(api, won);
  const [other, nobody, nothing] = [
    await listen({ ...won, userId: 'eve' }),
    await listen(won, { headers: {} }),
    await listen({ ...won, reservationId: 'nonsense' }),
  ];
  for (const each of [other, nobody, nothing]) await answered(each);
  expect([other.status, nobody.status, nothing.status]).toEqual([404, 401, 404]);
});

test('a buyer’s own token opens their own stream alone', async () => {
  const jwt = await testApi({ ...stores.env, ...HS256, EVENT_POLL_MS: '50' });
  const saleId = await putSale(jwt);
  const ann = bearing(await tokenOf('ann'));
  const pressed = await jwt.app.inject({ method: 'POST', url: `/sales/${saleId}/reserve`, headers: ann, payload: {} });
  const won = pressed.json<Won>();
  const first = await listen(won, { at: jwt, headers: ann });
  await heard(first, 1);
  const eve = bearing(await tokenOf('eve'));
  expect((await jwt.app.inject({ url: eventsUrl(won), headers: eve })).statusCode).toBe(403);
  expect((await jwt.app.inject({ url: eventsUrl(won).split('?')[0] ?? '', headers: eve })).statusCode).toBe(404);
  await jwt.close();
  await expect.poll(() => first.done, PATIENCE).toBe(true);
});

test('a ledger that is away is told, the stream stays, and goes on', async () => {
  const hurried = await testApi({ ...stores.env, EVENT_POLL_MS: '50', DB_LOCK_TIMEOUT_MS: '100' });
  const won = await win(hurried, await putSale(hurried), 'ann');
  await record(hurried, won);
  const first = await listen(won, { at: hurried });
  await heard(first, 1);
  const client = await hurried.db.connect();
  await client.query('begin; lock table sale_orders in access exclusive mode');
  await heard(first, 2);
  expect(first.events[1]).toMatchObject({ event: 'unavailable', data: '{"code":"ledger_unavailable"}' });
  await client.query('rollback');
  client.release();
  await heard(first, 3);
  expect(first.events[2]).toEqual(first.events[0]);
  await hurried.close();
});

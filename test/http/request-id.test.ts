/** The id by which a request is found in the log: the caller's if it is well-formed, and told back where it costs no refusal. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, asShop, press, putSale, testApi, type TestApi } from './api.ts';
import { freshStores, type Stores } from '../support/stores.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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

const idOf = async (headers: Record<string, string>, url = '/sales/none') =>
  (await ask(api, url, { headers: { ...asShop, ...headers } })).headers['x-request-id'];

test.each([
  ['r-1', 'r-1'],
  ['Root=1-67891233-abcdef012345678912345678', 'Root=1-67891233-abcdef012345678912345678'],
  ['x'.repeat(128), 'x'.repeat(128)],
])('%s is taken', async (given, expected) => {
  expect(await idOf({ 'x-request-id': given })).toBe(expected);
});

test.each(['x'.repeat(129), 'a b', '"', '{"level":60}', 'é', ''])('%j is not, and a new one is made', async (given) => {
  expect(await idOf({ 'x-request-id': given })).toMatch(UUID);
});

test('a trace id is taken, unless it is malformed or there is an id', async () => {
  const traceparent = `00-${TRACE}-b7ad6b7169203331-01`;
  expect(await idOf({ traceparent })).toBe(TRACE);
  expect(await idOf({ traceparent, 'x-request-id': 'r-2' })).toBe('r-2');
  for (const wrong of [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`, `00-${TRACE}-${'0'.repeat(16)}-01`, TRACE, 'x']) {
    expect(await idOf({ traceparent: wrong })).toMatch(UUID);
  }
});

test('told with every kind of answer but the refusals of a press', async () => {
  for (const url of ['/livez', '/nowhere', '/admin/sales', '/sales/none/reserve']) {
    expect(await idOf({ 'x-request-id': 'r-3' }, url), url).toBe('r-3');
  }
  const saleId = await putSale(api, { total: 1 });
  expect((await press(api, saleId, 'first')).headers['x-request-id']).toMatch(UUID);
  expect((await press(api, saleId, 'first')).headers['x-request-id']).toMatch(UUID);
  expect((await press(api, saleId, 'not\tan id')).headers['x-request-id']).toMatch(UUID);
  for (let n = 0; n < 5; n += 1) {
    const { headers, statusCode } = await press(api, saleId, `loser-${n}`);
    expect(statusCode).toBe(409);
    expect(headers).not.toHaveProperty('x-request-id');
  }
});

test('an error in the log names its request', async () => {
  const before = api.log.length;
  const response = await api.app.inject({
    ...{ method: 'GET', url: `/sales/${'s'.repeat(30)}`, headers: { 'x-request-id': 'r-4' } },
  });
  expect(response.headers['x-request-id']).toBe('r-4');
  api.wired.stores.gate.reserve = () => Promise.reject(new Error('a bug'));
  const saleId = await putSale(api);
  await api.app.inject({
    ...{ method: 'POST', url: `/sales/${saleId}/reserve`, headers: { ...asShop, 'x-request-id': 'r-5' } },
    payload: { userId: 'u' },
  });
  expect(api.log.slice(before)).toMatchObject([{ msg: 'unexpected', requestId: 'r-5' }]);
});

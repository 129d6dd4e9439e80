/** Who may call what: tokens of the storefront and of admins, rotation, and what is off when its secret is not set. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ADMIN, expectProblem, gateState, press, putSale, saleSettings, SERVICE, settings, testApi } from './api.ts';
import { deliver, eventOf, type TestApi } from './api.ts';

const RESERVATION = 'reservations/00000000-0000-4000-8000-000000000000?userId=u';

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

/** The app with other settings, for one test. */
async function withApi(changes: Record<string, string>, work: (api: TestApi) => Promise<void>): Promise<void> {
  const api = await testApi({ ...stores.env, ...changes });
  try {
    await work(api);
  } finally {
    await api.close();
  }
}

const reserveWith = ({ app }: TestApi, saleId: string, authorization: string | undefined, userId = 'u') =>
  app.inject({
    method: 'POST',
    url: `/sales/${saleId}/reserve`,
    headers: authorization === undefined ? {} : { authorization },
    payload: { userId },
  });

const listWith = ({ app }: TestApi, authorization: string | undefined) =>
  app.inject({
    method: 'GET',
    url: '/admin/sales',
    headers: authorization === undefined ? {} : { authorization },
  });

describe('tokens', () => {
  let api: TestApi;
  let saleId: string;
  beforeAll(async () => {
    api = await testApi({ ...stores.env, SERVICE_TOKEN: `${SERVICE} the-next-service-token` });
    saleId = await putSale(api);
  });
  afterAll(() => api.close());

  test.each<[string, string | undefined]>([
    ['none', undefined],
    ['empty', ''],
    ['the scheme alone', 'Bearer'],
    ['the scheme and a space', 'Bearer '],
    ['another scheme', `Basic ${Buffer.from(`x:${SERVICE}`).toString('base64')}`],
    ['the token without a scheme', SERVICE],
    ['another token', 'Bearer something-else-altogether'],
    ['the token in capitals', `Bearer ${SERVICE.toUpperCase()}`],
    ['a part of the token', `Bearer ${SERVICE.slice(0, -1)}`],
    ['the token and more', `Bearer ${SERVICE}x`],
    ['both tokens', `Bearer ${SERVICE} the-next-service-token`],
    ['the whole list as one', `Bearer ${SERVICE},the-next-service-token`],
    ['the admin token', `Bearer ${ADMIN}`],
    ['something very long', `Bearer ${'x'.repeat(8000)}`],
  ])('%s: 401 on every route of buyers, before the gate', async (_, authorization) => {
    const before = await gateState(api, saleId);
    expectProblem(await reserveWith(api, saleId, authorization), 'unauthorized');
    for (const method of ['GET', 'DELETE'] as const) {
      const headers = authorization === undefined ? {} : { authorization };
      const url = `/sales/${saleId}/${RESERVATION}`;
      expectProblem(await api.app.inject({ method, url, headers }), 'unauthorized');
    }
    expect(await gateState(api, saleId)).toEqual(before);
  });

  test('it is asked for before the body is looked at', async () => {
    const response = await api.app.inject({ method: 'POST', url: `/sales/${saleId}/reserve`, payload: 'broken' });
    expectProblem(response, 'unauthorized');
  });

  test('each token of the list is good, so that it can be rotated; the scheme in any case', async () => {
    const good = [`Bearer ${SERVICE}`, 'Bearer the-next-service-token', `bearer ${SERVICE}`, `BEARER  ${SERVICE}`];
    for (const [n, authorization] of good.entries()) {
      expect((await reserveWith(api, saleId, authorization, `u-${n}`)).statusCode).toBe(202);
    }
  });

  test('the admin routes take the admin token, not the storefront’s', async () => {
    expect((await listWith(api, `Bearer ${ADMIN}`)).statusCode).toBe(200);
    const routes: ['GET' | 'POST' | 'PUT', string][] = [
      ['GET', ''],
      ['GET', `/${saleId}`],
      ['PUT', `/${saleId}`],
      ['GET', `/${saleId}/orders`],
      ...['pause', 'resume', 'end', 'close'].map((action): ['POST', string] => ['POST', `/${saleId}/${action}`]),
    ];
    for (const [method, path] of routes) {
      for (const authorization of [undefined, `Bearer ${SERVICE}`, `Bearer ${ADMIN}x`]) {
        const response = await api.app.inject({
          method,
          url: `/admin/sales${path}`,
          headers: authorization === undefined ? {} : { authorization },
          ...(method === 'PUT' ? { payload: saleSettings() } : {}),
        });
        expectProblem(response, 'unauthorized');
      }
    }
    expect((await api.app.inject({ url: `/sales/${saleId}` })).json()).toMatchObject({ state: 'open' });
  });

  test('what is public asks for nothing', async () => {
    for (const url of [`/sales/${saleId}`, '/livez', '/readyz', '/openapi.json']) {
      expect((await api.app.inject({ url })).statusCode, url).toBe(200);
    }
  });
});

test.each([
  ['SERVICE_TOKEN', ['POST /sales/x/reserve', `GET /sales/x/${RESERVATION}`, `DELETE /sales/x/${RESERVATION}`]],
  ['ADMIN_TOKEN', ['GET /admin/sales', 'PUT /admin/sales/x', 'POST /admin/sales/x/pause', 'GET /admin/sales/x/orders']],
  ['WEBHOOK_SECRET', ['POST /webhooks/payments']],
])('without %s its routes are off, whatever token comes; the others are there', async (name, routes) => {
  await withApi({ [name]: '' }, async (api) => {
    for (const route of routes) {
      for (const token of ['', SERVICE, ADMIN, 'undefined']) {
        const [method, url] = route.split(' ') as ['GET', string];
        const response = await api.app.inject({ method, url, headers: { authorization: `Bearer ${token}` } });
        expectProblem(response, 'not_found');
      }
    }
    if (name !== 'ADMIN_TOKEN') expect((await listWith(api, `Bearer ${ADMIN}`)).statusCode).toBe(200);
    if (name !== 'SERVICE_TOKEN') expectProblem(await press(api, 'no-such-sale', 'u'), 'sale_not_found');
    if (name !== 'WEBHOOK_SECRET') {
      const event = eventOf({ reservationId: 'r', amount: 1, currency: 'EUR' }, { type: 'nothing.we.know' });
      expect((await deliver(api, event)).statusCode).toBe(200);
    }
  });
});

describe('AUTH_MODE=none', () => {
  test('lets anybody reserve and says so loudly; the admin routes keep their token', async () => {
    await withApi({ AUTH_MODE: 'none', SERVICE_TOKEN: '' }, async (api) => {
      expect(JSON.stringify(api.log)).toContain('AUTH_MODE=none');
      const saleId = await putSale(api);
      expect((await reserveWith(api, saleId, undefined)).statusCode).toBe(202);
      expect((await reserveWith(api, saleId, 'Bearer of nothing', 'u-2')).statusCode).toBe(202);
      expectProblem(await listWith(api, undefined), 'unauthorized');
    });
  });

  test('is refused in production', () => {
    const env = { ...settings, ...stores.env, AUTH_MODE: 'none' };
    expect(() => readConfig({ ...env, NODE_ENV: 'production' })).toThrow('AUTH_MODE=none');
    expect(readConfig({ ...env, NODE_ENV: 'development' }).AUTH_MODE).toBe('none');
  });
});

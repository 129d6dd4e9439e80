/** What browsers are told: which origins may call, and that nothing may be framed, sniffed or run inline. */
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withHeaders } from '../../src/http/browsers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, expectProblem, newId, press, putSale, testApi, type TestApi } from './api.ts';

const SHOP = 'https://shop.example';
let stores: Stores;
let plain: TestApi;
let open: TestApi;
let saleId: string;
beforeAll(async () => {
  stores = await freshStores();
  plain = await testApi(stores.env);
  open = await testApi({ ...stores.env, CORS_ORIGINS: `${SHOP} http://localhost:8080` });
  saleId = await putSale(open);
});
afterAll(async () => {
  await Promise.all([plain.close(), open.close()]);
  await stores.drop();
});

const preflight = ({ app }: TestApi, url: string, origin: string, method = 'POST') =>
  app.inject({
    method: 'OPTIONS',
    url,
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization,content-type',
    },
  });
const allowed = (headers: Record<string, unknown>) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-allow'));

describe('CORS', () => {
  test('is off by default: an origin changes nothing, a preflight is a method that is not allowed', async () => {
    const response = await ask(plain, `/sales/${saleId}`, { headers: { origin: SHOP } });
    expect(response.statusCode).toBe(200);
    expect([allowed(response.headers), response.headers['vary']]).toEqual([[], undefined]);
    expectProblem(await preflight(plain, `/sales/${saleId}/reserve`, SHOP), 'method_not_allowed');
  });

  test('a page of an allowed origin may press, look and give up, and read what it needs', async () => {
    for (const path of ['reserve', `reservations/${newId()}`]) {
      const response = await preflight(open, `/sales/${saleId}/${path}`, SHOP);
      expect(response.statusCode).toBe(204);
      expect(response.headers).toMatchObject({
        'access-control-allow-origin': SHOP,
        'access-control-allow-headers': 'authorization, content-type, last-event-id',
        'access-control-max-age': '600',
      });
      expect(String(response.headers['access-control-allow-methods']).split(', ')).toEqual(
        expect.arrayContaining(['GET', 'POST', 'DELETE']),
      );
      expect(response.headers).not.toHaveProperty('access-control-allow-credentials');
    }
    const answer = await open.app.inject({
      method: 'POST',
      url: `/sales/${saleId}/reserve`,
      headers: { origin: SHOP, authorization: 'Bearer nothing-good' },
      payload: {},
    });
    expectProblem(answer, 'unauthorized'); // a page can read a refusal as well
    expect(answer.headers['access-control-allow-origin']).toBe(SHOP);
    expect(String(answer.headers['access-control-expose-headers'])).toMatch(/location.*retry-after.*ratelimit/);
    expect(String(answer.headers['vary'])).toMatch(/origin/i);
  });

  test.each(['https://evil.example', 'https://shop.example.evil.example', 'http://shop.example', 'null'])(
    'no other origin: %s',
    async (origin) => {
      const reserve = `/sales/${saleId}/reserve`;
      expect((await preflight(open, reserve, origin)).headers).not.toHaveProperty('access-control-allow-origin');
      const response = await ask(open, `/sales/${saleId}`, { headers: { origin } });
      expect(response.headers).not.toHaveProperty('access-control-allow-origin');
    },
  );

  test('nor any other route, nor a path that is none', async () => {
    for (const url of ['/admin/sales', `/admin/sales/${saleId}`, '/webhooks/payments', '/openapi.json', '/livez']) {
      const response = await preflight(open, url, SHOP, 'GET');
      expectProblem(response, 'method_not_allowed');
      expect(allowed(response.headers), url).toEqual([]);
      expect(allowed((await ask(open, url, { headers: { origin: SHOP } })).headers), url).toEqual([]);
    }
    for (const method of ['OPTIONS', 'GET', 'POST'] as const) {
      expectProblem(await open.app.inject({ method, url: '/nothing', headers: { origin: SHOP } }), 'not_found');
    }
    expectProblem(await open.app.inject({ method: 'PATCH', url: `/sales/${saleId}/reserve` }), 'method_not_allowed');
  });
});

describe('headers', () => {
  const WANTED = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'SAMEORIGIN',
    'referrer-policy': 'no-referrer',
    'strict-transport-security': 'max-age=31536000',
    'content-security-policy': expect.stringMatching(
      /^(?!.*unsafe)default-src 'none';.*script-src 'self'.*frame-ancestors 'none'/,
    ) as string,
  };

  test('on everything that a browser may show by itself, refusals too', async () => {
    for (const url of ['/openapi.json', '/livez', '/admin/sales', `/sales/${saleId}/reservations/${newId()}`]) {
      expect((await ask(plain, url)).headers, url).toMatchObject(WANTED);
    }
  });

  test('not on what a whole crowd asks: there they would cost more than the answer', async () => {
    const id = await putSale(plain);
    for (const { headers } of [await press(plain, id, 'u'), await ask(plain, `/sales/${id}`)]) {
      expect(headers).not.toHaveProperty('content-security-policy');
    }
  });

  test('a page gets them, and may ask for something else', async () => {
    const app = Fastify();
    const page = '<!doctype html><title>x</title>';
    await withHeaders(app, (scope) => {
      scope.get('/page', (_request, reply) => reply.type('text/html').send(page));
      const helmet = { contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'self'"] } } };
      scope.get('/other', { helmet }, (_request, reply) => reply.type('text/html').send(page));
    });
    expect((await app.inject('/page')).headers).toMatchObject(WANTED);
    expect((await app.inject('/other')).headers['content-security-policy']).toBe("default-src 'self'");
    await app.close();
  });
});

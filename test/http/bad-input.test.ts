/** Whatever is wrong with a request is a problem document with its code, and takes nothing at the gate. */
import { METHODS } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ProblemCode } from '../../src/http/problem.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ADMIN, ask, asShop, expectProblem, gateState, newId, putSale, saleSettings, SERVICE } from './api.ts';
import { testApi, win, type GateState, type TestApi } from './api.ts';
import { sendRaw } from './socket.ts';

let stores: Stores;
let api: TestApi;
let saleId: string;
let before: GateState;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
  saleId = await putSale(api);
  await win(api, saleId, 'somebody');
  before = await gateState(api, saleId);
});
afterEach(async () => {
  expect(await gateState(api, saleId), 'something reached the gate').toEqual(before);
  expect(
    api.log.filter(({ level }) => Number(level) >= 50),
    'an error that nobody expected',
  ).toEqual([]);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const post = (payload: string, headers: Record<string, string> = {}) =>
  api.app.inject({
    method: 'POST',
    url: `/sales/${saleId}/reserve`,
    headers: { ...asShop, 'content-type': 'application/json', ...headers },
    payload,
  });

describe('bodies of reserve', () => {
  test.each([
    ['nothing', ''],
    ['broken JSON', '{"userId":'],
    ['a list', '[]'],
    ['a list around it', '[{"userId":"u"}]'],
    ['null', 'null'],
    ['a string', '"u"'],
    ['a number', '1'],
    ['nothing in it', '{}'],
    ['JSON and something more', '{"userId":"u"} x'],
    ['single quotes', "{'userId':'u'}"],
    ['userId missing', '{"qty":1}'],
    ['userId null', '{"userId":null}'],
    ['userId empty', '{"userId":""}'],
    ['userId a number beyond 2^53', '{"userId":9007199254740993}'],
    ['userId a list', '{"userId":["u"]}'],
    ['userId an object', '{"userId":{"$ne":""}}'],
    ['userId true', '{"userId":true}'],
    ['userId with a NUL', '{"userId":"u\\u0000"}'],
    ['userId with a line feed', '{"userId":"u\\n"}'],
    ['userId with a space', '{"userId":"a b"}'],
    ['userId with DEL', '{"userId":"a\\u007f"}'],
    ['userId not ASCII', '{"userId":"jürgen"}'],
    ['userId an emoji', '{"userId":"😀"}'],
    ['userId half a surrogate pair', '{"userId":"\\ud800"}'],
    ['userId of 129 characters', `{"userId":"${'u'.repeat(129)}"}`],
    ['qty as text', '{"userId":"u","qty":"1"}'],
    ['qty 1.5', '{"userId":"u","qty":1.5}'],
    ['qty 1e309', '{"userId":"u","qty":1e309}'],
    ['qty null', '{"userId":"u","qty":null}'],
    ['qty 0', '{"userId":"u","qty":0}'],
    ['qty -0', '{"userId":"u","qty":-0}'],
    ['qty -1', '{"userId":"u","qty":-1}'],
    ['qty 2^53', '{"userId":"u","qty":9007199254740992}'],
    ['qty NaN', '{"userId":"u","qty":NaN}'],
    ['qty true', '{"userId":"u","qty":true}'],
    ['qty a list', '{"userId":"u","qty":[1]}'],
    ['an unknown member', '{"userId":"u","quantity":1}'],
    ['a price of their own', '{"userId":"u","amount":1}'],
    ['__proto__', '{"userId":"u","__proto__":{"qty":1}}'],
    ['constructor.prototype', '{"userId":"u","constructor":{"prototype":{}}}'],
  ])('%s: 400', async (_, body) => {
    expectProblem(await post(body), 'invalid_request');
  });

  test.each<[string, string, string, ProblemCode]>([
    ['text', 'text/plain', '{"userId":"u"}', 'unsupported_media_type'],
    ['a form', 'application/x-www-form-urlencoded', 'userId=u', 'unsupported_media_type'],
    ['multipart', 'multipart/form-data; boundary=x', '--x--', 'unsupported_media_type'],
    ['XML', 'application/xml', '<u/>', 'unsupported_media_type'],
    ['something that is no media type', 'json', '{"userId":"u"}', 'unsupported_media_type'],
    ['merge patch', 'application/merge-patch+json', '{"userId":"u"}', 'unsupported_media_type'],
  ])('%s: 415', async (_, type, body, code) => {
    expectProblem(await post(body, { 'content-type': type }), code);
  });

  test('a body over the limit: 413, told by its length and also when it comes in chunks', async () => {
    const body = JSON.stringify({ userId: 'u'.repeat(100_000) });
    expectProblem(await post(body), 'payload_too_large');
    const head = `POST /sales/${saleId}/reserve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SERVICE}\r\nContent-Type: application/json\r\n`;
    const chunked = `${head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expectProblem(await sendRaw(await api.url(), chunked), 'payload_too_large');
  });
});

describe('paths and queries', () => {
  const bad: [string, string][] = [
    ['a dot', 'a.b'],
    ['a space', 'a%20b'],
    ['a NUL', '%00'],
    ['not ASCII', '%C3%BC'],
    ['65 characters', 'a'.repeat(65)],
    ['300 characters', 'a'.repeat(300)],
    ['an encoded slash', 'a%2Fb'],
    ['braces, as Redis Cluster reads them', '%7Bx%7D'],
  ];
  const at: ['GET' | 'POST' | 'PUT' | 'DELETE', string][] = [
    ['GET', '/sales/ID'],
    ['POST', '/sales/ID/reserve'],
    ['GET', '/sales/ID/reservations/00000000-0000-4000-8000-000000000000?userId=u'],
    ['DELETE', '/sales/ID/reservations/00000000-0000-4000-8000-000000000000?userId=u'],
    ['PUT', '/admin/sales/ID'],
    ['GET', '/admin/sales/ID'],
    ['GET', '/admin/sales/ID/orders'],
    ...['pause', 'resume', 'end', 'close'].map((action): ['POST', string] => ['POST', `/admin/sales/ID/${action}`]),
  ];
  test.each(at)('%s %s: a saleId that can be none is 400', async (method, url) => {
    for (const [what, id] of bad) {
      const payload = method === 'PUT' ? saleSettings() : { userId: 'u' };
      const response = await api.app.inject({
        method,
        url: url.replace('ID', id),
        headers: { authorization: `Bearer ${url.startsWith('/admin') ? ADMIN : SERVICE}` },
        ...(url.endsWith('reserve') || method === 'PUT' ? { payload } : {}),
      });
      expect(expectProblem(response, 'invalid_request'), what).toBeTruthy();
    }
  });

  test.each(['/sales/%', '/sales/%zz', '/sales/%E0%A4%A', '/%ff', '/sales/%c0%80'])(
    'broken percent-encoding, %s: 400, also over a socket',
    async (path) => {
      expectProblem(await ask(api, path), 'invalid_request');
      const raw = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
      expectProblem(await sendRaw(await api.url(), raw), 'invalid_request');
    },
  );

  test.each(['/', '/nothing', '/sales', '/sales/x/', '//', '/sales/x/reservations', '/admin', '/SALES/x'])(
    'unknown path %s: 404',
    async (path) => {
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE'] as const) {
        expectProblem(await api.app.inject({ method, url: path }), 'not_found');
      }
    },
  );

  test.each(['', '?userId=', '?userId=a&userId=b', '?userId[]=a', '?userId=a%00', '?userId=a%20b', '?userId=%C3%BC'])(
    'reservation asked with the query %s: 400',
    async (query) => {
      const url = `/sales/${saleId}/reservations/00000000-0000-4000-8000-000000000000${query}`;
      for (const method of ['GET', 'DELETE'] as const) {
        expectProblem(await ask(api, url, { method }), 'invalid_request');
      }
    },
  );

  test.each([`?userId=${'u'.repeat(129)}`, '?userId=u&more=1', '?userId=u&__proto__=1', `?${'a&'.repeat(2000)}`])(
    'other absurd queries of a reservation: 400 (%#)',
    async (query) => {
      const url = `/sales/${saleId}/reservations/00000000-0000-4000-8000-000000000000${query}`;
      expectProblem(await ask(api, url), 'invalid_request');
    },
  );

  test.each(['x', '1', '00000000-0000-4000-8000-00000000000', '%00', "'--", 'a'.repeat(65), 'a'.repeat(700)])(
    'a reservationId that can be none (%s): 400 or 404, never more',
    async (id) => {
      const response = await ask(api, `/sales/${saleId}/reservations/${id}?userId=u`);
      const { code } = JSON.parse(response.body) as { code: ProblemCode };
      expect(['reservation_not_found', 'invalid_request', 'not_found']).toContain(code);
      expectProblem(response, code);
    },
  );
});

describe('methods', () => {
  const paths: [string, string][] = [
    ['/sales/SALE', 'GET, HEAD'],
    ['/sales/SALE/reserve', 'POST'],
    ['/sales/SALE/reservations/00000000-0000-4000-8000-000000000000', 'DELETE, GET, HEAD'],
    ['/webhooks/payments', 'POST'],
    ['/admin/sales', 'GET, HEAD'],
    ['/admin/sales/SALE', 'GET, HEAD, PUT'],
    ['/admin/sales/SALE/orders', 'GET, HEAD'],
    ['/admin/sales/SALE/pause', 'POST'],
    ['/admin/sales/SALE/resume', 'POST'],
    ['/admin/sales/SALE/end', 'POST'],
    ['/admin/sales/SALE/close', 'POST'],
    ['/livez', 'GET, HEAD'],
    ['/readyz', 'GET, HEAD'],
    ['/openapi.json', 'GET, HEAD'],
    ['/docs', 'GET, HEAD'],
    ['/docs/static/swagger-ui.css', 'GET, HEAD'],
  ];
  // CONNECT names a host, not a path: Node.js' server closes such a connection before anybody sees a request.
  const methods = METHODS.filter((method) => method !== 'CONNECT');

  test.each(paths)('%s allows %s, and says so to all other methods that Node.js knows', async (path, allow) => {
    const url = await api.url();
    const others = methods.filter((method) => !allow.split(', ').includes(method));
    expect(others.length).toBeGreaterThan(25);
    await Promise.all(
      others.map(async (method) => {
        const raw = `${method} ${path.replace('SALE', saleId)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
        const response = await sendRaw(url, raw);
        if (method === 'HEAD') expect([response.statusCode, response.body]).toEqual([405, '']);
        else expectProblem(response, 'method_not_allowed');
        expect(response.headers['allow'], method).toBe(allow);
      }),
    );
  });

  test('another method with a body, in whatever media type, is 405 too', async () => {
    const response = await api.app.inject({
      method: 'PATCH',
      url: `/sales/${saleId}/reserve`,
      headers: { 'content-type': 'application/x-anything' },
      payload: 'x',
    });
    expectProblem(response, 'method_not_allowed');
  });

  test('a method that nobody knows is 400, and CONNECT is closed', async () => {
    const url = await api.url();
    expectProblem(await sendRaw(url, 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n'), 'invalid_request');
    const connect = await sendRaw(url, 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n');
    expect(connect.statusCode).toBe(0);
  });

  test('HEAD is GET without the body', async () => {
    const url = await api.url();
    for (const path of [`/sales/${saleId}`, '/livez', '/openapi.json']) {
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) =>
          sendRaw(url, `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
        ),
      );
      expect(head).toMatchObject({ statusCode: 200, body: '' });
      expect(head?.headers['content-type']).toBe(get?.headers['content-type']);
      expect(head?.headers['content-length']).toBe(get?.headers['content-length']);
    }
    const missing = await sendRaw(url, `HEAD /sales/${newId()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(missing).toMatchObject({ statusCode: 404, body: '' });
  });
});

describe('bytes that are no request', () => {
  test.each<[string, string, ProblemCode]>([
    ['headers too large', `GET /livez HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`, 'headers_too_large'],
    ['an address too long', `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 'headers_too_large'],
    ['garbage', '\u0000\u0001 hello\r\n\r\n', 'invalid_request'],
    ['TLS on the plain port', '\u0016\u0003\u0001\u0002\u0000\u0001', 'invalid_request'],
    ['a header with a NUL', 'GET /livez HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n', 'invalid_request'],
    [
      'length and chunks at once',
      'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'invalid_request',
    ],
    ['a length that is none', 'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 'invalid_request'],
  ])('%s', async (_, bytes, code) => {
    expectProblem(await sendRaw(await api.url(), bytes), code);
  });

  test('a client that goes away in the middle of its body harms nobody', async () => {
    const url = await api.url();
    const { hostname, port } = new URL(url);
    const { connect } = await import('node:net');
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(`POST /sales/${saleId}/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n`);
        socket.write(`Authorization: Bearer ${SERVICE}\r\nContent-Type: application/json\r\n\r\n{"userId"`, () => {
          socket.destroy();
          resolve();
        });
      });
    });
    expect((await ask(api, '/livez')).statusCode).toBe(200);
  });
});

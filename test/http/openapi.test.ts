/** /openapi.json says what there is: every route, every code, and schemas to which real answers keep. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { problems } from '../../src/http/problem.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, deliver, eventOf, newId, press, putSale, record, reservationUrl, saleSettings } from './api.ts';
import { testApi, win, type TestApi } from './api.ts';
import { HS256 } from './tokens.ts';

type Answer = Awaited<ReturnType<typeof ask>>;
type Operation = {
  summary?: string;
  security?: Record<string, string[]>[];
  requestBody?: { content: Record<string, { schema: { required?: string[] } }> };
  parameters?: { name: string; required?: boolean }[];
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
};
type Document = {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: {
    securitySchemes: Record<string, object>;
    schemas: Record<string, { properties: Record<string, object> }>;
  };
};

let stores: Stores;
let api: TestApi;
let document: Document;
let ajv: Ajv2020;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
  document = (await ask(api, '/openapi.json')).json<Document>();
  ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'openapi');
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

test('OpenAPI 3.1, in which no reference leads nowhere', () => {
  expect(document.openapi).toMatch(/^3\.1\./);
  const references = new Set([...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref ?? ''));
  expect(references.size).toBeGreaterThan(5);
  for (const reference of references) {
    expect(ajv.getSchema(`openapi${reference}`), reference).toBeTypeOf('function');
  }
});

test('every route is there, with what it is for, who may call it, and what it refuses with', () => {
  const expected = {
    '/livez': 'get',
    '/readyz': 'get',
    '/sales/{saleId}': 'get',
    '/sales/{saleId}/reserve': 'post',
    '/sales/{saleId}/reservations/{reservationId}': 'delete get',
    '/admin/sales': 'get',
    '/admin/sales/{saleId}': 'get put',
    '/admin/sales/{saleId}/pause': 'post',
    '/admin/sales/{saleId}/resume': 'post',
    '/admin/sales/{saleId}/end': 'post',
    '/admin/sales/{saleId}/close': 'post',
    '/admin/sales/{saleId}/orders': 'get',
    '/admin/sales/{saleId}/orders/{reservationId}/refund': 'post',
    '/webhooks/payments': 'post',
  };
  const found = Object.entries(document.paths).map(([path, methods]) => [path, Object.keys(methods).sort().join(' ')]);
  expect(Object.fromEntries(found)).toEqual(expected);
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const { summary, security, responses } of Object.values(methods)) {
      expect(summary).toBeTruthy();
      const who = path.startsWith('/admin') ? ['admin'] : /reserv/.test(path) ? ['storefront'] : [];
      expect(security?.flatMap(Object.keys) ?? [], path).toEqual(who);
      if (path.endsWith('z')) continue;
      expect(Object.keys(responses['default']?.content ?? {}), path).toEqual(['application/problem+json']);
    }
  }
  expect(Object.keys(document.components.securitySchemes).sort()).toEqual(['admin', 'storefront']);
});

test.each([
  ['jwt', HS256, ['buyer']],
  ['none', { AUTH_MODE: 'none' }, []],
])('AUTH_MODE=%s: it says who may call the buyers’ routes, and what need not be named', async (mode, env, who) => {
  const other = await testApi({ ...stores.env, ...env });
  try {
    const { paths, components } = (await ask(other, '/openapi.json')).json<Document>();
    for (const [path, methods] of Object.entries(paths).filter(([each]) => /^\/sales.*reserv/.test(each))) {
      for (const { security, requestBody, parameters } of Object.values(methods)) {
        expect(security?.flatMap(Object.keys) ?? [], path).toEqual(who);
        const body = requestBody?.content['application/json']?.schema;
        if (body) expect(body.required ?? []).toEqual(mode === 'jwt' ? [] : ['userId']);
        const inQuery = parameters?.find(({ name }) => name === 'userId');
        if (!body) expect(inQuery?.required ?? false).toBe(mode !== 'jwt');
      }
    }
    expect(Object.keys(components.securitySchemes).sort()).toEqual(['admin', ...who]);
    if (mode === 'jwt') expect(components.securitySchemes['buyer']).toMatchObject({ bearerFormat: 'JWT' });
  } finally {
    await other.close();
  }
});

test('the codes of the document are the codes of the program', () => {
  expect(document.components.schemas['Problem']?.properties['code']).toMatchObject({ enum: Object.keys(problems) });
});

test('real answers keep to it, good ones and refusals', async () => {
  const check = (method: string, path: string, answer: Answer) => {
    const { responses } = document.paths[path]?.[method] ?? { responses: {} };
    const status = String(answer.statusCode);
    const type = String(answer.headers['content-type']).split(';')[0] ?? '';
    const key = responses[status] ? status : 'default';
    const at = [path, method, 'responses', key, 'content', type, 'schema'];
    expect(responses[key]?.content?.[type], `${method} ${path} ${status} ${type}`).toBeTruthy();
    const pointer = at.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/');
    const validate = ajv.getSchema(`openapi#/paths/${pointer}`);
    expect(validate?.(answer.json()), `${answer.body} ${ajv.errorsText(validate?.errors)}`).toBe(true);
    return answer;
  };
  const saleId = newId();
  const one = '/admin/sales/{saleId}';
  for (const _ of ['created', 'changed']) check('put', one, await admin(api, 'PUT', `/${saleId}`, saleSettings()));
  check('put', one, await admin(api, 'PUT', `/${saleId}`, {}));
  check('get', '/admin/sales', await admin(api, 'GET', ''));

  const reserve = '/sales/{saleId}/reserve';
  for (const userId of ['u', 'u', 'not ok']) check('post', reserve, await press(api, saleId, userId));
  check('post', reserve, await press(api, saleId, 'v', 99));
  check('post', reserve, await press(api, newId(), 'v'));
  const won = await win(api, saleId, 'u');
  const other = await win(api, saleId, 'other');
  const reservation = '/sales/{saleId}/reservations/{reservationId}';
  check('get', reservation, await ask(api, reservationUrl(won)));
  await record(api, won, other);
  check('post', '/webhooks/payments', await deliver(api, eventOf(won, { amount: 1 })));
  check('post', '/webhooks/payments', await deliver(api, '{}'));
  check('get', reservation, await ask(api, reservationUrl(won)));
  check('get', reservation, await ask(api, reservationUrl({ ...won, userId: 'x' })));
  await ask(api, reservationUrl(other), { method: 'DELETE' });
  check('get', reservation, await ask(api, reservationUrl(other)));
  await deliver(api, eventOf(won));
  check('get', reservation, await ask(api, reservationUrl(won)));
  check('delete', reservation, await ask(api, reservationUrl(won), { method: 'DELETE' }));

  check('get', '/admin/sales/{saleId}/orders', await admin(api, 'GET', `/${saleId}/orders`));
  const refund = `/${saleId}/orders/${won.reservationId}/refund`;
  for (const returnUnits of [true, true, false, 'yes']) {
    check('post', `${one}/orders/{reservationId}/refund`, await admin(api, 'POST', refund, { returnUnits }));
  }
  check('get', reservation, await ask(api, reservationUrl(won)));
  check('get', '/admin/sales/{saleId}/orders', await admin(api, 'GET', `/${saleId}/orders?status=REFUNDED`));
  check('get', '/admin/sales/{saleId}/orders', await admin(api, 'GET', `/${saleId}/orders?status=EXPIRED`));
  check('get', '/admin/sales/{saleId}/orders', await admin(api, 'GET', `/${saleId}/orders?limit=0`));
  check('get', one, await admin(api, 'GET', `/${saleId}`));
  check('get', '/sales/{saleId}', await ask(api, `/sales/${saleId}`));
  for (const action of ['pause', 'resume', 'close', 'end', 'resume', 'close']) {
    check('post', `${one}/${action}`, await admin(api, 'POST', `/${saleId}/${action}`));
  }
  check('get', '/sales/{saleId}', await ask(api, `/sales/${saleId}`));
  const lost = await putSale(api, { startsAt: '2999-01-01T00:00:00Z', endsAt: '2999-01-02T00:00:00Z' });
  check('post', reserve, await press(api, lost, 'u'));
  await api.redis.del(...gateKeys(lost));
  check('post', reserve, await press(api, lost, 'u'));
  check('get', one, await admin(api, 'GET', `/${lost}`));
  for (const path of ['/livez', '/readyz']) check('get', path, await ask(api, path));
  api.drain();
  check('get', '/readyz', await ask(api, '/readyz'));
});

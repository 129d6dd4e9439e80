/** The admin routes of webhooks: endpoints, secrets that are told once, the log, redelivery. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { InjectOptions } from 'fastify';
import { MAX_ENDPOINTS } from '../../src/domain/webhook.ts';
import { asAdmin, asShop, deliver, eventOf, expectProblem, newId, putSale, record, testApi, win } from '../http/api.ts';
import type { TestApi } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';

const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;
let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
});
beforeEach(async () => {
  await api.db.query('delete from webhook_endpoints; delete from webhook_deliveries');
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const settings = (but: object = {}) => ({ url: 'https://shop.example/hook', events: ['reservation.paid'], ...but });
const call = (method: InjectOptions['method'] & string, path: string, payload?: object, headers: object = asAdmin) =>
  api.app.inject({
    method: method as 'GET',
    url: `/admin/webhooks${path}`,
    headers: { ...headers },
    ...(payload ? { payload } : {}),
  });
const create = async (but: object = {}, id = newId()) => {
  const response = await call('PUT', `/${id}`, settings(but));
  expect(response.statusCode, response.body).toBe(201);
  return { id, ...response.json<{ secret: string }>() };
};

describe('an endpoint', () => {
  test('created: 201, with a secret that is told this once; changed: 200, without', async () => {
    const { id, secret, ...rest } = await create();
    expect(secret).toMatch(SECRET);
    const shown = { endpointId: id, ...settings(), active: true, createdAt: expect.any(String) as string };
    expect(rest).toEqual(shown);
    expect((await call('GET', `/${id}`)).json()).toEqual(shown);
    expect((await call('GET', '')).json()).toEqual({ endpoints: [shown] });
    const other = { url: 'https://other.example/', events: ['reservation.expired', 'reservation.paid'], active: false };
    const changed = await call('PUT', `/${id}`, { ...other, events: [...other.events, 'reservation.paid'] });
    expect([changed.statusCode, changed.json()]).toEqual([
      200,
      { ...shown, ...other, events: ['reservation.paid', 'reservation.expired'] },
    ]);
  });

  test('rotated: a new secret, told this once, and until when the old one signs too', async () => {
    const { id, secret } = await create();
    const before = Date.now();
    const rotated = (await call('POST', `/${id}/rotate`)).json<{ secret: string; oldSecretUntil: string }>();
    expect(rotated.secret).toMatch(SECRET);
    expect(rotated.secret).not.toBe(secret);
    const until = Date.parse(rotated.oldSecretUntil) - before;
    expect(Math.abs(until - api.config.WEBHOOKS_ROTATION_MS)).toBeLessThan(60_000);
    expect((await call('GET', `/${id}`)).json()).toMatchObject({ oldSecretUntil: rotated.oldSecretUntil });
    for (const path of ['', `/${id}`]) expect((await call('GET', path)).body).not.toContain('whsec_');
  });

  test('deleted: 204, and gone; its id may be used again, with a secret of its own', async () => {
    const { id, secret } = await create();
    expect((await call('DELETE', `/${id}`)).statusCode).toBe(204);
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/rotate'],
      ['GET', '/deliveries'],
    ] as const) {
      expectProblem(await call(method, `/${id}${path}`), 'endpoint_not_found');
    }
    expectProblem(await call('POST', `/${id}/deliveries/x/redeliver`), 'endpoint_not_found');
    expect((await create({}, id)).secret).not.toBe(secret);
  });

  test('no more than there may be, also when they come at once; changing one goes on', async () => {
    const ids = Array.from({ length: MAX_ENDPOINTS + 3 }, () => newId());
    const answers = await Promise.all(ids.map((id) => call('PUT', `/${id}`, settings())));
    const refused = answers.filter(({ statusCode }) => statusCode !== 201);
    expect(refused).toHaveLength(3);
    for (const each of refused) expectProblem(each, 'too_many_endpoints');
    const there = ids[answers.findIndex(({ statusCode }) => statusCode === 201)] ?? '';
    expect((await call('PUT', `/${there}`, settings({ active: false }))).statusCode).toBe(200);
  });

  test.each<[string, object]>([
    ['http', { url: 'http://shop.example/' }],
    ['a private address', { url: 'https://10.0.0.1/' }],
    ['loopback', { url: 'https://[::1]/' }],
    ['a password', { url: 'https://u:p@shop.example/' }],
    ['no URL', { url: 'shop' }],
    ['a URL that is too long', { url: `https://shop.example/${'x'.repeat(2000)}` }],
    ['no events', { events: [] }],
    ['an event that is none', { events: ['reservation.pending'] }],
    ['events that are no list', { events: 'reservation.paid' }],
    ['active as text', { active: 'true' }],
    ['a secret of its own', { secret: 'whsec_x' }],
    ['url missing', { url: undefined }],
    ['events missing', { events: undefined }],
  ])('%s: 400, and no endpoint', async (_, but) => {
    const id = newId();
    expectProblem(await call('PUT', `/${id}`, settings(but)), 'invalid_request');
    expectProblem(await call('GET', `/${id}`), 'endpoint_not_found');
  });

  test.each(['a b', 'ä', 'x'.repeat(65), '%00'])('an id like %s: 400', async (id) => {
    expectProblem(await call('PUT', `/${encodeURIComponent(id)}`, settings()), 'invalid_request');
  });

  test('only for admins', async () => {
    const { id } = await create();
    for (const headers of [{}, asShop]) {
      for (const [method, path] of [
        ...([
          ['PUT', ''],
          ['GET', ''],
          ['DELETE', ''],
          ['POST', '/rotate'],
          ['GET', '/deliveries'],
        ] as const),
        ['POST', '/deliveries/x/redeliver'] as const,
      ]) {
        expectProblem(await call(method, `/${id}${path}`, undefined, headers), 'unauthorized');
      }
    }
  });
});

describe('the log', () => {
  type Page = { deliveries: { eventId: string; status: string }[]; next: string | null };
  const page = async (id: string, query = '') => {
    const response = await call('GET', `/${id}/deliveries${query}`);
    expect(response.statusCode, response.body).toBe(200);
    return response.json<Page>();
  };

  test('the newest first, page by page, by status; one of them sent again', async () => {
    const { id } = await create();
    const saleId = await putSale(api);
    const won = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((userId) => win(api, saleId, userId)));
    await record(api, ...won);
    for (const each of won) await deliver(api, eventOf(each));
    const ids = won.map(({ reservationId }) => `${reservationId}_paid`).reverse();
    expect(await page(id)).toMatchObject({ deliveries: ids.map((eventId) => ({ eventId })) });

    const seen: string[] = [];
    for (let after = ''; ;) {
      const { deliveries, next } = await page(id, `?limit=2${after}`);
      seen.push(...deliveries.map(({ eventId }) => eventId));
      if (next === null) break;
      after = `&after=${next}`;
    }
    expect(seen).toEqual(ids);

    await api.db.query(
      `update webhook_deliveries set status = 'FAILED', attempts = 10, last_status = 500, last_answer = 'no', last_error = 'HTTP 500'
       where event_id = $1`,
      [ids[1]],
    );
    expect((await page(id, '?status=FAILED')).deliveries).toEqual([
      {
        ...{ eventId: ids[1], type: 'reservation.paid', status: 'FAILED', attempts: 10 },
        ...{ lastStatus: 500, lastAnswer: 'no', lastError: 'HTTP 500' },
        ...{ createdAt: expect.any(String) as string, updatedAt: expect.any(String) as string },
      },
    ]);
    expect((await page(id, '?status=PENDING&limit=1')).deliveries).toMatchObject([{ eventId: ids[0], attempts: 0 }]);
    const again = await call('POST', `/${id}/deliveries/${ids[1]}/redeliver`);
    expect([again.statusCode, again.json()]).toEqual([
      202,
      expect.objectContaining({
        eventId: ids[1],
        status: 'PENDING',
        attempts: 0,
        nextAttemptAt: expect.any(String) as string,
      }),
    ]);
    expect((await page(id, '?status=FAILED')).deliveries).toEqual([]);
    expectProblem(await call('POST', `/${id}/deliveries/nothing_paid/redeliver`), 'delivery_not_found');
  });

  test.each(['status=paid', 'status=', 'limit=0', 'limit=1001', 'after=x', 'after=-1', 'after=', 'page=2'])(
    '?%s: 400',
    async (query) => {
      const { id } = await create();
      expectProblem(await call('GET', `/${id}/deliveries?${query}`), 'invalid_request');
    },
  );
});

/** No input makes a 500: requests made up at random, against every route, and answers that all keep to the contract. */
import { METHODS } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { problems } from '../../src/http/problem.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ADMIN, eventOf, putSale, saleSettings, SERVICE, signed, testApi, win, type TestApi } from './api.ts';

const RUNS = 6000;

let stores: Stores;
let api: TestApi;
let known: { saleId: string; reservationId: string };
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
  known = await win(api, await putSale(api, { total: 1_000_000, maxPerReservation: 1000 }), 'somebody');
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** Text as a careless or hostile client would send it. */
const odd = fc.oneof(
  fc.constantFrom('', '0', 'null', '../..', '%00', '\u0000', '{}', "';--", '￿', '𝒳', '__proto__', 'constructor'),
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ maxLength: 300 }),
  fc.uuid(),
);
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(1e308, -0, 2 ** 53, 9_007_199_254_740_991, 1.5, '1', [], {}, null, true),
);
/** A good document with a few members replaced, dropped or added. */
function spoiled(good: Record<string, unknown>): fc.Arbitrary<unknown> {
  const name = fc.constantFrom(...Object.keys(good), 'more', '__proto__', 'id');
  return fc.array(fc.tuple(name, fc.oneof(anyJson, odd, fc.constant(undefined))), { maxLength: 3 }).map((changes) => {
    const entries = new Map<string, unknown>([...Object.entries(good), ...changes]);
    return Object.fromEntries([...entries].filter(([, value]) => value !== undefined));
  });
}
const asText = (value: unknown) => JSON.stringify(value);

const time = fc.constantFrom(
  ...['2030-01-01T00:00:00Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59-23:59'],
  ...['0001-01-01T00:00:00+14:00', '2026-02-29T00:00:00Z', '2030-01-01', '2030-01-01T00:00:00.0000000001Z'],
);
const settingsBody = fc
  .record(
    { startsAt: time, endsAt: time, name: odd, total: fc.integer({ min: -1, max: 2 ** 31 }) },
    { requiredKeys: [] },
  )
  .chain((changes) => spoiled(saleSettings(changes)));
const eventBody = fc
  .record(
    {
      type: fc.constantFrom('payment.succeeded', 'payment.failed', 'payment.canceled', 'refund.succeeded', 'x'),
      data: fc.oneof(
        spoiled({ ...eventOf({ reservationId: 'r', amount: 1, currency: 'EUR' }).data }),
        fc.record({ paymentId: odd, reservationId: odd, amount: fc.maxSafeNat(), currency: odd }),
        fc.record({ reservationId: odd }).map((changes) => ({
          ...eventOf({ reservationId: '', amount: 1, currency: 'EUR' }).data,
          ...changes,
        })),
      ),
    },
    { requiredKeys: ['data'] },
  )
  .chain((changes) => spoiled({ ...eventOf({ reservationId: 'r', amount: 1, currency: 'EUR' }), ...changes }));

const saleIds = fc.oneof(
  fc.constant('KNOWN'),
  fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/).map((id) => `f-${id}`.slice(0, 64)),
  odd.map(encodeURIComponent0),
);
/** encodeURIComponent refuses half a surrogate pair; a client written in C does not. */
function encodeURIComponent0(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}
const reservationIds = fc.oneof(fc.constant('KNOWN-RESERVATION'), fc.uuid(), odd.map(encodeURIComponent0));
const query = fc.oneof(
  fc.constantFrom('', '?userId=somebody', '?limit=5', '?status=PAID'),
  fc
    .array(fc.tuple(fc.constantFrom('userId', 'status', 'after', 'limit', 'x', '__proto__', 'userId[]'), odd), {
      maxLength: 4,
    })
    .map((pairs) => `?${pairs.map(([name, value]) => `${name}=${encodeURIComponent0(value)}`).join('&')}`),
  fc
    .tuple(fc.stringMatching(/^\d{1,20}$/), fc.stringMatching(/^[0-9a-f-]{36}$/))
    .map(([xid, id]) => `?after=${xid}.${id}`),
);

const reserve = spoiled({ userId: 'u-1', qty: 1 }).map(asText);
const routes: [method: string, path: fc.Arbitrary<string>, body: fc.Arbitrary<string>][] = [
  ['GET', saleIds.map((id) => `/sales/${id}`), fc.constant('')],
  ['POST', saleIds.map((id) => `/sales/${id}/reserve`), reserve],
  ...['GET', 'DELETE'].map((method): [string, fc.Arbitrary<string>, fc.Arbitrary<string>] => [
    method,
    fc.tuple(saleIds, reservationIds, query).map(([id, r, q]) => `/sales/${id}/reservations/${r}${q}`),
    fc.constant(''),
  ]),
  ['PUT', saleIds.map((id) => `/admin/sales/${id}`), settingsBody.map(asText)],
  ['GET', saleIds.map((id) => `/admin/sales/${id}`), fc.constant('')],
  ['GET', fc.tuple(saleIds, query).map(([id, q]) => `/admin/sales/${id}/orders${q}`), fc.constant('')],
  ['GET', fc.constant('/admin/sales'), fc.constant('')],
  [
    'POST',
    fc
      .tuple(saleIds, fc.constantFrom('pause', 'resume', 'end', 'close'))
      .filter(([id]) => id !== 'KNOWN')
      .map(([id, action]) => `/admin/sales/${id}/${action}`),
    fc.constant(''),
  ],
  ['POST', fc.constant('/webhooks/payments'), eventBody.map(asText)],
  ['GET', fc.constant('/openapi.json'), fc.constant('')],
  ['GET', odd.map((text) => `/${encodeURIComponent0(text)}`), fc.constant('')],
];

const headers = fc.record(
  {
    authorization: fc.oneof(
      { weight: 8, arbitrary: fc.constant('USUAL') },
      { weight: 1, arbitrary: fc.string({ maxLength: 60 }).filter((text) => !/[^\x20-\x7e]/.test(text)) },
    ),
    'content-type': fc.oneof(
      { weight: 8, arbitrary: fc.constant('application/json') },
      {
        weight: 1,
        arbitrary: fc.constantFrom('', 'text/plain', '*/*', 'application/json; charset=utf-16', ';', 'a/b'),
      },
    ),
    'content-encoding': fc.constantFrom('gzip', 'identity', 'nonsense'),
    'webhook-signature': fc.constantFrom('', 'v1', 'v1,', 'v1,AAAA', ',', 'v2,x v1,y', 'v1,' + 'é'),
    'webhook-timestamp': fc.constantFrom('', '0', 'x', '1e400', '99999999999999999999', '-1'),
    expect: fc.constant('100-continue'),
  },
  { requiredKeys: ['authorization', 'content-type'] },
);

const requests = fc
  .tuple(fc.constantFrom(...routes), headers, fc.boolean())
  .chain(([[usual, path, good], given, honest]) =>
    fc.record({
      method: fc.oneof(
        { weight: 9, arbitrary: fc.constant(usual) },
        { weight: 1, arbitrary: fc.constantFrom(...METHODS.filter((method) => method !== 'CONNECT')) },
      ),
      path,
      body: fc.oneof({ weight: 8, arbitrary: good }, { weight: 1, arbitrary: odd }),
      headers: fc.constant(given),
      honest: fc.constant(honest),
    }),
  );

test(`${RUNS} requests made up at random: never a 500, and each refusal a problem that the list has`, async () => {
  await fc.assert(
    fc.asyncProperty(requests, async ({ method, path, body, headers: given, honest }) => {
      const url = path.replace('KNOWN-RESERVATION', known.reservationId).replace('KNOWN', known.saleId);
      const usual = `Bearer ${url.startsWith('/admin') ? ADMIN : SERVICE}`;
      const response = await api.app.inject({
        method: method,
        url,
        headers: {
          ...(honest && url.startsWith('/webhooks') ? signed(body) : {}),
          ...given,
          ...(given.authorization === 'USUAL' ? { authorization: usual } : {}),
        },
        ...(body === '' ? {} : { payload: body }),
      });
      if (response.statusCode < 400) return;
      expect(response.statusCode, `${response.body} ${JSON.stringify(api.log.at(-1))}`).not.toBe(500);
      // A token that happens to be good, stores that are there: nothing is away.
      expect(response.statusCode, response.body).not.toBe(503);
      if (method === 'HEAD') return;
      const problem = response.json<{ code: keyof typeof problems; status: number }>();
      expect(Object.keys(problems)).toContain(problem.code);
      expect(problem.status).toBe(response.statusCode);
    }),
    { numRuns: RUNS, seed: 20_260_801 },
  );
}, 90_000);

/** Requests made up at random: paths, headers and bodies for every route, and bytes that are hardly requests any more. */
import { METHODS } from 'node:http';
import fc from 'fast-check';
import { eventOf, saleSettings } from './api.ts';

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
const journalQuery = fc
  .tuple(fc.constantFrom('', '&saleId=KNOWN', '&limit=3'), fc.stringMatching(/^\d{1,20}\.\d{1,20}$/))
  .map(([more, after]) => `?after=${after}${more}`);

type Route = [method: string, path: fc.Arbitrary<string>, body: fc.Arbitrary<string>];
const endpoint = fc
  .tuple(fc.oneof(fc.constant('shop'), saleIds), query)
  .map(([id, q]) => ({ path: `/admin/webhooks/${id}`, q }));
const endpointSettings = spoiled({ url: 'https://shop.example/', events: ['reservation.paid'], active: true });
const webhookRoutes: Route[] = [
  ['GET', fc.constant('/admin/webhooks'), fc.constant('')],
  ['PUT', endpoint.map(({ path }) => path), endpointSettings.map(asText)],
  ...['GET', 'DELETE'].map((method): Route => [method, endpoint.map(({ path }) => path), fc.constant('')]),
  ['POST', endpoint.map(({ path }) => `${path}/rotate`), fc.constant('')],
  ['GET', endpoint.map(({ path, q }) => `${path}/deliveries${q}`), fc.constant('')],
  [
    'POST',
    fc.tuple(endpoint, reservationIds).map(([{ path }, id]) => `${path}/deliveries/${id}/redeliver`),
    fc.constant(''),
  ],
];

const reserve = spoiled({ userId: 'u-1', qty: 1 }).map(asText);
const routes: Route[] = [
  ['GET', fc.constantFrom('/livez', '/readyz'), fc.constant('')],
  ['GET', saleIds.map((id) => `/sales/${id}`), fc.constant('')],
  ['GET', saleIds.map((id) => `/sales/${id}/events`), fc.constant('')],
  [
    'GET',
    fc.tuple(saleIds, reservationIds, query).map(([id, r, q]) => `/sales/${id}/reservations/${r}/events${q}`),
    fc.constant(''),
  ],
  ['POST', saleIds.map((id) => `/sales/${id}/reserve`), reserve],
  ...['GET', 'DELETE'].map((method): Route => [
    method,
    fc.tuple(saleIds, reservationIds, query).map(([id, r, q]) => `/sales/${id}/reservations/${r}${q}`),
    fc.constant(''),
  ]),
  ['PUT', saleIds.map((id) => `/admin/sales/${id}`), settingsBody.map(asText)],
  ['GET', saleIds.map((id) => `/admin/sales/${id}`), fc.constant('')],
  ['GET', fc.tuple(saleIds, query).map(([id, q]) => `/admin/sales/${id}/orders${q}`), fc.constant('')],
  ['GET', fc.constant('/admin/sales'), fc.constant('')],
  ['GET', fc.oneof(query, journalQuery).map((q) => `/admin/journal${q}`), fc.constant('')],
  [
    'POST',
    fc
      .tuple(saleIds, fc.constantFrom('pause', 'resume', 'end', 'close'))
      .filter(([id]) => id !== 'KNOWN')
      .map(([id, action]) => `/admin/sales/${id}/${action}`),
    fc.constant(''),
  ],
  [
    'POST',
    fc.tuple(saleIds, reservationIds).map(([id, r]) => `/admin/sales/${id}/orders/${r}/refund`),
    spoiled({ returnUnits: true }).map(asText),
  ],
  ...webhookRoutes,
  ['POST', fc.constant('/webhooks/payments'), eventBody.map(asText)],
  ['GET', fc.constant('/openapi.json'), fc.constant('')],
  ['GET', odd.map((text) => `/${encodeURIComponent0(text)}`), fc.constant('')],
];

const json64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** What looks like a token: a header, claims, and a signature of anything. */
const tokenish = fc
  .tuple(
    fc.oneof(
      fc.record(
        { alg: fc.oneof(fc.constantFrom('none', 'HS256', 'RS256', 'ES256'), odd), kid: odd },
        { requiredKeys: [] },
      ),
      anyJson,
    ),
    fc.oneof(spoiled({ sub: 'u', aud: 'flashgate-tests', exp: 4_000_000_000 }), anyJson),
    fc.oneof(fc.string(), fc.base64String()),
  )
  .map(([header, claims, signature]) => `Bearer ${json64(header)}.${json64(claims)}.${signature}`)
  .filter((text) => !/[^\x20-\x7e]/.test(text));
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(
    '',
    ',',
    ' , ,',
    'unknown',
    '::ffff:1.2.3.4',
    '1.2.3.4:80',
    '[::1]:80',
    '999.1.1.1',
    '1.2.3.4, x, ::1',
  ),
  fc.string({ maxLength: 40 }).filter((text) => !/[^\x20-\x7e]/.test(text)),
);

const headers = fc.record(
  {
    authorization: fc.oneof(
      { weight: 8, arbitrary: fc.constant('USUAL') },
      { weight: 1, arbitrary: fc.string({ maxLength: 60 }).filter((text) => !/[^\x20-\x7e]/.test(text)) },
      { weight: 1, arbitrary: tokenish },
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
    'last-event-id': fc.oneof(
      fc.constantFrom('', '0'),
      fc.string({ maxLength: 40 }).filter((text) => !/[^\x20-\x7e]/.test(text)),
    ),
    origin: fc.constantFrom('', 'null', 'https://shop.example', 'https://evil.example', '*'),
    'access-control-request-method': fc.constantFrom('', 'POST', 'DELETE', '*'),
    'x-forwarded-for': address,
    'x-forwarded-host': fc.constantFrom('', 'x', ':', 'a,b'),
    'x-forwarded-proto': fc.constantFrom('', 'https', ',', 'x'),
  },
  { requiredKeys: ['authorization', 'content-type'] },
);

export const requests = fc
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

/** Good requests, byte for byte, of which a few bytes are then changed, taken out or put in; or anything at all. */
const good = [
  'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST /sales/x/reserve HTTP/1.1\r\nHost: x\r\nAuthorization: USUAL\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"userId":"u"}',
  'POST /sales/x/reserve HTTP/1.1\r\nHost: x\r\nAuthorization: USUAL\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{"userId":"u"}\r\n0\r\n\r\n',
  'DELETE /sales/x/reservations/y?userId=u HTTP/1.1\r\nHost: x\r\nAuthorization: USUAL\r\n\r\n',
  'OPTIONS /sales/x/reserve HTTP/1.1\r\nHost: x\r\nOrigin: https://shop.example\r\nAccess-Control-Request-Method: POST\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
];
type Edit = { at: number; remove: number; put: Uint8Array };
const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat(300),
  remove: fc.nat(4),
  put: fc.oneof(
    fc.uint8Array({ maxLength: 4 }),
    fc.constantFrom('\r\n', '\r\n\r\n', '\0', ':', ' ', '%', 'Content-Length: 5\r\n').map((text) => Buffer.from(text)),
  ),
});
function edited(text: string, edits: Edit[]): Buffer {
  return edits.reduce(
    (bytes, { at, remove, put }) => Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + remove)]),
    Buffer.from(text),
  );
}
/** @param authorization a good one */
export const rawRequests = (authorization: string): fc.Arbitrary<Buffer> =>
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc
        .tuple(fc.constantFrom(...good), fc.array(edit, { maxLength: 3 }))
        .map(([text, edits]) => edited(text.replace('USUAL', authorization), edits)),
    },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
  );

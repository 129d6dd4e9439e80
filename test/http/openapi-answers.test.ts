/**
 * Everything that /openapi.json says may be answered is really answered, as it says: each status and each code of each
 * operation is provoked, and `Conformity` holds the answer to the document. What is left to others is listed.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_ENDPOINTS } from '../../src/domain/webhook.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { startStripe, stripeEvent, stripeSettings, stripeSignature, type StripeStandIn } from '../support/stripe.ts';
import { admin, asAdmin, ask, asShop, deliver, eventOf, expectProblem, newId, press, putSale, record } from './api.ts';
import { reservationUrl, saleSettings, shortLimits, signed, testApi, win, type TestApi } from './api.ts';
import type { Response } from './conform.ts';
import { call, type Call, OF_A_RESERVATION, OF_BUYERS, operations, refused, report } from './operations.ts';
import { sendRaw } from './socket.ts';
import { bearing, HS256, tokenOf } from './tokens.ts';

let stores: Stores;
let api: TestApi;
/** Buyers with tokens of their own, who may press once. */
let byToken: TestApi;
let withoutKeys: TestApi;
let withoutGate: TestApi;
let withoutQueue: TestApi;
let impatient: TestApi;
let stripe: StripeStandIn;
const all = () => [api, byToken, withoutKeys, withoutGate, withoutQueue, impatient];
const NOWHERE = '127.0.0.1:9'; // "discard": nobody listens there
beforeAll(async () => {
  stores = await freshStores();
  const keys = { JWT_ALGORITHM: 'RS256', JWT_SECRET: '', JWT_JWKS_URL: `http://${NOWHERE}/jwks.json` };
  stripe = await startStripe();
  const checkout = stripeSettings(stripe.url);
  api = await testApi({ ...stores.env, ...checkout });
  byToken = await testApi({ ...stores.env, ...HS256, RATE_LIMIT_BUYER: '1' });
  withoutKeys = await testApi({ ...stores.env, ...HS256, ...keys });
  withoutGate = await testApi({ ...stores.env, ...shortLimits, ...checkout, REDIS_URL: `redis://${NOWHERE}/0` });
  withoutQueue = await testApi({ ...stores.env, ...shortLimits, SQS_ENDPOINT: `http://${NOWHERE}` });
  impatient = await testApi({ ...stores.env, ...checkout, DB_LOCK_TIMEOUT_MS: '100' });
});
afterAll(async () => {
  await Promise.all(all().map((each) => each.close()));
  await stripe.close();
  await stores.drop();
});

const ACTIONS = ['pauseSale', 'resumeSale', 'endSale', 'closeSale'];
const OF_ONE_SALE = ['getSaleFigures', 'listOrders', 'refundOrder', ...ACTIONS];
const OF_AN_ENDPOINT = ['getWebhookEndpoint', 'rotateWebhookSecret', 'listWebhookDeliveries', 'redeliverWebhook'];
const FAR = { startsAt: '2999-01-01T00:00:00Z', endsAt: '2999-01-02T00:00:00Z' };

test('what everybody may be told: bad input, no token, a body that is wrong', async () => {
  for (const [path, method, { operationId, security = [] }] of operations(api)) {
    const [scheme] = security.flatMap(Object.keys);
    if (scheme === 'signature' || scheme === 'provider') continue;
    if (path.includes('{')) await refused('invalid_request', api, [operationId], { saleId: 'a.b', endpointId: 'a.b' });
    if (scheme !== undefined) await refused('unauthorized', api, [operationId], { headers: {} });
    if (method === 'get') continue;
    const headers = { ...(scheme === 'admin' ? asAdmin : asShop), 'content-type': 'text/plain' };
    await refused('unsupported_media_type', api, [operationId], { headers, payload: 'x' });
    await refused('payload_too_large', api, [operationId], { payload: { name: 'x'.repeat(100_000) } });
  }
});

test('a press, and what the buyer finds', async () => {
  const saleId = await putSale(api, { total: 2 });
  const won = await win(api, saleId, 'u');
  expect((await press(api, saleId, 'u')).statusCode).toBe(200);
  expectProblem(await press(api, saleId, 'v', 99), 'qty_over_limit');
  const other = await win(api, saleId, 'other');
  expectProblem(await press(api, saleId, 'v'), 'sold_out');
  expectProblem(await press(api, await putSale(api, FAR), 'u'), 'not_started');
  expect((await ask(api, reservationUrl(won))).json()).toMatchObject({ status: 'QUEUED' });
  await record(api, won, other);
  await deliver(api, eventOf(won));
  expect((await ask(api, reservationUrl(won))).json()).toMatchObject({ status: 'PAID' });
  expectProblem(await ask(api, reservationUrl(won), { method: 'DELETE' }), 'already_paid');
  await refused('already_paid', api, ['openCheckout'], { saleId, reservationId: won.reservationId });
  expect((await ask(api, reservationUrl(other), { method: 'DELETE' })).statusCode).toBe(204);
  const over = { saleId, reservationId: other.reservationId, userId: 'other' };
  await refused('reservation_ended', api, ['openCheckout'], over);
  await deliver(api, eventOf(other)); // money for what was given up: owed back
  const given = await ask(api, reservationUrl(other));
  expect(given.json()).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer', refund: 'PENDING' });
  await told(api, 'reservationEvents', over);
  await refused('reservation_not_found', api, OF_A_RESERVATION, { saleId });
  expect((await ask(api, `/sales/${saleId}`)).statusCode).toBe(200);
  await refused('sale_not_found', api, ['getSale', 'saleEvents', 'reserve']);

  await admin(api, 'POST', `/${saleId}/pause`);
  expectProblem(await press(api, saleId, 'v'), 'paused');
  await admin(api, 'POST', `/${saleId}/end`);
  expectProblem(await press(api, saleId, 'v'), 'ended');
});

/** A stream that tells one thing, the last; whoever knows that is not told anything. */
async function told(at: TestApi, operationId: string, options: Call): Promise<void> {
  const first = await call(at, operationId, options);
  const [, id = ''] = /^id: (\S+)$/m.exec(first.body) ?? [];
  expect([first.statusCode, id.length]).toEqual([200, 16]);
  const again = { ...options, headers: { ...asShop, 'last-event-id': id } };
  expect((await call(at, operationId, again)).statusCode).toBe(204);
}

test('the life of a sale, for admins', async () => {
  const saleId = newId();
  const put = (changes: object) => admin(api, 'PUT', `/${saleId}`, { ...saleSettings(), ...changes });
  expect([(await put({})).statusCode, (await put({})).statusCode]).toEqual([201, 200]);
  const won = await win(api, saleId, 'u');
  await record(api, won);
  expectProblem(await put({ total: 0 }), 'total_too_low');
  expectProblem(await put({ price: { amount: 1, currency: 'USD' } }), 'currency_fixed');
  await refused('sale_not_found', api, OF_ONE_SALE);
  for (const operationId of [
    'listSales',
    'listJournal',
    'getSaleFigures',
    'listOrders',
    'pauseSale',
    'resumeSale',
    'endSale',
  ]) {
    expect((await call(api, operationId, { saleId })).statusCode).toBe(200);
  }
  await refused('not_settled', api, ['closeSale'], { saleId });
  const its = { saleId, reservationId: won.reservationId };
  await refused('not_paid', api, ['refundOrder'], its);
  await refused('reservation_not_found', api, ['refundOrder'], { saleId });
  await deliver(api, eventOf(won));
  // The list ends before what an older transaction, which may be another test's, could still add to.
  const orders = async () => (await admin(api, 'GET', `/${saleId}/orders`)).json<object>();
  await expect.poll(orders, { timeout: 15_000 }).toMatchObject({ orders: [{ status: 'PAID' }] });
  await expect.poll(async () => (await call(api, 'closeSale', { saleId })).statusCode).toBe(200);
  await refused('ended', api, ['putSale', 'pauseSale', 'resumeSale', 'endSale', 'refundOrder'], its);
  await api.directory.refresh();
  await told(api, 'saleEvents', { saleId });
  const payload = { returnUnits: false };
  expect((await call(api, 'refundOrder', { ...its, payload })).json()).toMatchObject({ status: 'REFUNDED' });
  await refused('refunded_otherwise', api, ['refundOrder'], its);
  expect((await ask(api, `/sales/${saleId}`)).json()).toMatchObject({ state: 'closed' });
});

test('the life of an endpoint for webhooks, for admins', async () => {
  const its = { endpointId: newId() };
  const status = async (operationId: string, more: object = {}) =>
    (await call(api, operationId, { ...its, ...more })).statusCode;
  await refused('endpoint_not_found', api, [...OF_AN_ENDPOINT, 'deleteWebhookEndpoint'], its);
  expect([await status('putWebhookEndpoint'), await status('putWebhookEndpoint')]).toEqual([201, 200]);
  const won = await win(api, await putSale(api), 'u');
  await record(api, won);
  await deliver(api, eventOf(won));
  expect(await status('redeliverWebhook', { eventId: `${won.reservationId}_paid` })).toBe(202);
  await refused('delivery_not_found', api, ['redeliverWebhook'], its);
  for (const operationId of ['listWebhookEndpoints', 'getWebhookEndpoint', 'rotateWebhookSecret']) {
    expect(await status(operationId)).toBe(200);
  }
  expect((await call(api, 'listWebhookDeliveries', its)).json()).toMatchObject({ deliveries: [{ status: 'PENDING' }] });
  for (let more = 1; more < MAX_ENDPOINTS; more += 1) await call(api, 'putWebhookEndpoint');
  await refused('too_many_endpoints', api, ['putWebhookEndpoint']);
  expect(await status('deleteWebhookEndpoint')).toBe(204);
});

test('what a payment provider is told', async () => {
  const event = JSON.stringify(eventOf({ reservationId: randomUUID(), amount: 1, currency: 'EUR' }));
  const send = (headers: Record<string, string>, payload = event) =>
    api.app.inject({ method: 'POST', url: '/webhooks/payments', headers, payload });
  expect((await send(signed(event))).json()).toMatchObject({ state: 'parked' });
  expectProblem(await send({ ...signed(event), 'webhook-signature': 'v1,no' }), 'bad_signature');
  const old = new Date(Date.now() - 3_600_000);
  expectProblem(await send(signed(event, { at: old })), 'timestamp_out_of_range');
  expectProblem(await deliver(api, '{}'), 'malformed_event');
  expectProblem(await send({}, 'x'.repeat(100_000)), 'payload_too_large');
  expectProblem(await send({ ...signed(event), 'content-type': 'json' }), 'unsupported_media_type');
});

test('a page to pay on, and what the provider reports in its own form', async () => {
  const saleId = await putSale(api);
  const { reservationId } = await win(api, saleId, 'u');
  const its = { saleId, reservationId };
  stripe.state.faults = [{ path: '/v1/checkout', status: 400 }];
  await refused('payment_provider_refused', api, ['openCheckout'], its);
  stripe.state.faults = [{ path: '/v1/checkout', status: 500, times: 10 }];
  await refused('payment_provider_unavailable', api, ['openCheckout'], its);
  stripe.state.faults = [];
  expect((await call(api, 'openCheckout', its)).json()).toMatchObject({ reservationId });

  const event = stripeEvent('customer.created', {});
  expect((await report(api, event)).statusCode).toBe(200);
  expectProblem(await report(api, event, 'nonsense'), 'bad_signature');
  const old = stripeSignature(JSON.stringify(event), { timestamp: 1 });
  expectProblem(await report(api, event, old), 'timestamp_out_of_range');
  expectProblem(await report(api, { ...event, livemode: true }), 'wrong_mode');
  expectProblem(await report(api, {}), 'malformed_event');
  expectProblem(await report(api, { x: 'x'.repeat(100_000) }), 'payload_too_large');
  expectProblem(await report(api, event, undefined, { 'content-type': 'json' }), 'unsupported_media_type');
});

test('buyers with tokens of their own: another’s name, too often, keys out of reach', async () => {
  await byToken.directory.refresh();
  const saleId = await putSale(byToken);
  const reserving = ['reserve', ...OF_BUYERS];
  const headers = bearing(await tokenOf('u'));
  for (const at of [byToken, withoutKeys]) await refused('unauthorized', at, reserving, { saleId, headers: {} });
  await refused('forbidden', byToken, ['reserve'], { saleId, headers, userId: 'x' });
  const own = bearing(await tokenOf('v'));
  for (const operationId of OF_BUYERS) {
    const mine = bearing(await tokenOf(operationId));
    await refused('forbidden', byToken, [operationId], { headers: mine, userId: 'x' });
    await refused('rate_limited', byToken, [operationId], { headers: mine, userId: operationId });
  }
  expect((await call(byToken, 'reserve', { saleId, headers: own, userId: 'v' })).statusCode).toBe(202);
  await refused('rate_limited', byToken, ['reserve'], { saleId, headers: own, userId: 'v' });
  const { headers: unknown } = { headers: bearing(await tokenOf('u', await rsaKey())) };
  await refused('keys_unavailable', withoutKeys, reserving, { saleId, headers: unknown });
});

async function rsaKey() {
  const { generateKeyPair } = await import('jose');
  return { alg: 'RS256', kid: 'k', key: (await generateKeyPair('RS256')).privateKey };
}

test('a store that is away, or not loaded', async () => {
  const saleId = await putSale(api);
  const won = await win(api, saleId, 'u');
  await record(api, won);
  for (const each of [withoutGate, withoutQueue]) await each.directory.refresh();
  const known = { saleId };
  const settled = ['pauseSale', 'resumeSale', 'putSale'];
  await refused('gate_unavailable', withoutGate, ['reserve', 'getSale', ...OF_A_RESERVATION, ...settled], known);
  expectProblem(await press(withoutQueue, saleId, 'w'), 'queue_unavailable');
  expect((await call(withoutGate, 'getSaleFigures', known)).json()).toMatchObject({ gate: null });

  await api.redis.del(...gateKeys(saleId));
  const other = await putSale(api);
  const lost = await putSale(api);
  await admin(api, 'POST', `/${lost}/end`);
  await refused('gate_unavailable', withoutGate, ['endSale'], { saleId: other });
  await refused('gate_unavailable', withoutGate, ['closeSale'], { saleId: lost });
  await api.redis.del(...gateKeys(lost));
  await refused('gate_not_loaded', api, ['reserve', 'getSale', ...settled, 'endSale'], known);
  await refused('gate_not_loaded', api, ['closeSale'], { saleId: lost });
  for (const path of ['/livez', '/readyz']) expect((await ask(api, path)).statusCode).toBe(200);
});

const LOCKED = 'sales, sale_orders, payment_events, payments, webhook_endpoints, admin_journal';

test('a ledger that does not answer in time, and one that is broken', async () => {
  const saleId = await putSale(impatient);
  const client = await impatient.db.connect();
  await client.query('begin');
  await client.query(`lock table ${LOCKED} in access exclusive mode`);
  try {
    const asking = ['putSale', 'listSales', ...OF_ONE_SALE, ...OF_A_RESERVATION, ...OF_AN_ENDPOINT];
    asking.push('listJournal', 'listWebhookEndpoints', 'putWebhookEndpoint', 'deleteWebhookEndpoint');
    await refused('ledger_unavailable', impatient, asking, { saleId });
    await refused('ledger_unavailable', impatient, ['getSale', 'saleEvents', 'reserve']);
    expectProblem(
      await deliver(impatient, eventOf({ reservationId: 'x', amount: 1, currency: 'EUR' })),
      'ledger_unavailable',
    );
    const intent = { id: 'pi', amount_received: 1, currency: 'eur', metadata: { reservationId: 'x' } };
    const paid = stripeEvent('payment_intent.succeeded', intent);
    expectProblem(await report(impatient, paid), 'ledger_unavailable');
    await client.query('rollback; alter table sales rename to gone');
    expectProblem(await admin(impatient, 'GET', ''), 'internal_error');
  } finally {
    await client.query('rollback; alter table if exists gone rename to sales');
    client.release();
  }
});

test('what is refused before it is known what is wanted', async () => {
  const { conformity, url } = api;
  const raw = async (head: string) => {
    const answer = await sendRaw(await url(), `GET /livez HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n`);
    conformity.check('GET', '/livez', answer);
    return answer;
  };
  expectProblem(await raw(`X: ${'x'.repeat(20_000)}`), 'headers_too_large');
  expectProblem(await raw('X: a\u0000b'), 'invalid_request');
});

/** Provoked elsewhere, where answers are held to the document too, or the same for all since it is before any route. */
const ELSEWHERE: Record<string, string> = {
  overloaded: 'overload.test.ts',
  request_timeout: 'slow-clients.test.ts',
  internal_error: 'a bug, wherever it is',
  headers_too_large: 'before any route',
  invalid_request: 'before any route, where there is nothing to check',
};

test('nothing that is documented was left out', async () => {
  api.drain();
  expect((await ask(api, '/readyz')).statusCode).toBe(503);
  const told = all().flatMap((at) =>
    operations(at).flatMap(([, , { operationId, responses }]) =>
      Object.entries(responses).flatMap(([status, response]) => {
        const { content } = at.conformity.resolve(response) as Response;
        const examples = content?.['application/problem+json']?.examples;
        return (examples ? Object.keys(examples) : [status]).map((what) => `${operationId} ${what}`);
      }),
    ),
  );
  const seen = new Set(all().flatMap(({ conformity }) => [...conformity.seen]));
  const left = [...new Set(told)].filter(
    (each) => !seen.has(each) && !Object.hasOwn(ELSEWHERE, each.split(' ')[1] ?? ''),
  );
  expect(told.length).toBeGreaterThan(150);
  expect(left).toEqual([]);
});

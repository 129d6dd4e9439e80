/** POST /webhooks/payments: Standard Webhooks over the bytes as they came, and 2xx only for what is durable. */
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, deliver, eventOf, expectProblem, newId, putSale, record, reservationUrl, SECRET, signed } from './api.ts';
import { testApi, win, type TestApi, type Won } from './api.ts';
import { sendRaw } from './socket.ts';

const NEXT_SECRET = `whsec_${Buffer.from('the secret that comes after it').toString('base64')}`;
const STRANGER = `whsec_${Buffer.from('a secret that nobody told us.').toString('base64')}`;

let stores: Stores;
let api: TestApi;
let saleId: string;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, WEBHOOK_SECRET: `${SECRET} ${NEXT_SECRET}` });
  saleId = await putSale(api, { total: 1000 });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const send = (payload: string | Buffer, headers: Record<string, string>) =>
  api.app.inject({ method: 'POST', url: '/webhooks/payments', headers, payload });

const unknown = () => JSON.stringify({ type: 'customer.waved', timestamp: 'x', data: {} });

/** A reservation that has its order. */
async function ordered(userId = newId()): Promise<Won> {
  const won = await win(api, saleId, userId);
  await record(api, won);
  return won;
}

const statusOf = async (won: Won) => (await ask(api, reservationUrl(won))).json<{ status: string; refund?: string }>();

const stored = async (paymentId: string) => {
  const payment = await api.db.query('select status, reservation_id from payments where payment_id = $1', [paymentId]);
  const refund = await api.db.query('select amount, reason from refunds where payment_id = $1', [paymentId]);
  return [...(payment.rows as object[]), ...(refund.rows as object[])];
};

describe('the signature', () => {
  test('good: the order is paid, and the same event again changes nothing', async () => {
    const won = await ordered();
    const event = eventOf(won);
    const first = await deliver(api, event, 'evt-same');
    expect([first.statusCode, first.json()]).toEqual([200, { state: 'applied', outcome: 'paid' }]);
    expect(await statusOf(won)).toMatchObject({ status: 'PAID' });
    const again = await deliver(api, event, 'evt-same');
    expect([again.statusCode, again.json()]).toEqual([200, { state: 'ignored', outcome: 'repeated' }]);
  });

  test('20 deliveries of one event at once: one transition, 2xx for all, no refund', async () => {
    const won = await ordered();
    const event = eventOf(won);
    const id = `evt-${newId()}`;
    const answers = await Promise.all(Array.from({ length: 20 }, () => deliver(api, event, id)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(200));
    expect(answers.filter((answer) => answer.json<{ outcome: string }>().outcome === 'paid')).toHaveLength(1);
    expect(await statusOf(won)).toEqual(expect.not.objectContaining({ refund: expect.anything() as unknown }));
  });

  const bad: [string, (headers: ReturnType<typeof signed>, body: string) => Record<string, string>][] = [
    ['none of the headers', () => ({})],
    ['no signature', ({ 'webhook-signature': _, ...rest }) => rest],
    ['no id', ({ 'webhook-id': _, ...rest }) => rest],
    ['no timestamp', ({ 'webhook-timestamp': _, ...rest }) => rest],
    ['an empty signature', (headers) => ({ ...headers, 'webhook-signature': '' })],
    ['another id than was signed', (headers) => ({ ...headers, 'webhook-id': 'evt-other' })],
    [
      'another timestamp than was signed',
      (headers) => ({ ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 1) }),
    ],
    ['a timestamp that is none', (headers) => ({ ...headers, 'webhook-timestamp': 'now' })],
    ['a secret that is not ours', (_, body) => signed(body, { secret: STRANGER })],
    ['without its version', (headers) => ({ ...headers, 'webhook-signature': headers['webhook-signature'].slice(3) })],
    ['version 2', (headers) => ({ ...headers, 'webhook-signature': `v2${headers['webhook-signature'].slice(2)}` })],
    ['cut short', (headers) => ({ ...headers, 'webhook-signature': headers['webhook-signature'].slice(0, -4) })],
    ['not ASCII', (headers) => ({ ...headers, 'webhook-signature': 'v1,\u00e9\u00ff' })],
    ['an id of 300 characters', (_, body) => signed(body, { id: 'e'.repeat(300) })],
  ];
  test.each(bad)('%s: 401 bad_signature, and nothing is stored', async (_, spoil) => {
    const event = eventOf({ reservationId: newId(), amount: 1, currency: 'EUR' });
    const body = JSON.stringify(event);
    expectProblem(await send(body, spoil(signed(body), body)), 'bad_signature');
    expect(await stored(event.data.paymentId)).toEqual([]);
  });

  test('of other bytes than those that came: 401', async () => {
    const body = unknown();
    expectProblem(await send(`${body} `, signed(body)), 'bad_signature');
    expectProblem(await send('', signed(body)), 'bad_signature');
  });

  test('several signatures: one that fits is enough, at whatever place', async () => {
    const body = unknown();
    const good = signed(body);
    const [stranger, fits] = [signed(body, { id: good['webhook-id'], secret: STRANGER }), good].map(
      (headers) => headers['webhook-signature'],
    );
    for (const signature of [`${stranger} ${fits}`, `${fits} ${stranger}`, `v1a,xyz v2,x v1, ${fits}`]) {
      expect((await send(body, { ...good, 'webhook-signature': signature })).statusCode).toBe(200);
    }
    expectProblem(await send(body, { ...good, 'webhook-signature': `${stranger} ${stranger}` }), 'bad_signature');
  });

  test('several secrets: each of them is good', async () => {
    const body = unknown();
    for (const secret of [SECRET, NEXT_SECRET]) {
      expect((await send(body, signed(body, { secret }))).statusCode).toBe(200);
    }
  });

  test('five minutes of tolerance, both ways', async () => {
    const body = unknown();
    const at = (seconds: number) => signed(body, { at: new Date(Date.now() + seconds * 1000) });
    for (const seconds of [-295, -1, 1, 295]) expect((await send(body, at(seconds))).statusCode).toBe(200);
    for (const seconds of [-86_400, -305, 305, 86_400]) {
      expectProblem(await send(body, at(seconds)), 'timestamp_out_of_range');
    }
    const millis = signed(body, { at: new Date(Date.now() * 1000) });
    expectProblem(await send(body, millis), 'timestamp_out_of_range');
  });

  test('over the bytes as they came: odd whitespace, other orders of members, text beyond ASCII', async () => {
    const url = await api.url();
    const texts = ['  \r\n\t{"type" :\t"x.y" ,\n"a":"Jürgen 😀 \u2028"}\n ', '{"b":1e2,"type":"x.y","b":2,"n":1.0}'];
    for (const body of texts) {
      expect((await send(body, signed(body))).json()).toEqual({ state: 'ignored', outcome: 'unknown_type' });
      const lines = Object.entries({ ...signed(body), host: 'x', connection: 'close' }).map((line) => line.join(': '));
      const length = Buffer.byteLength(body);
      const raw = `POST /webhooks/payments HTTP/1.1\r\n${lines.join('\r\n')}\r\nContent-Length: ${length}\r\n\r\n${body}`;
      expect((await sendRaw(url, raw)).statusCode).toBe(200);
    }
  });

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'application/octet-stream',
    'x/y',
    '',
  ])('whatever content type the provider sends (%s)', async (type) => {
    const body = unknown();
    const headers = { ...signed(body), ...(type === '' ? {} : { 'content-type': type }) };
    expect((await send(Buffer.from(body), headers)).statusCode).toBe(200);
  });

  test('a body over the limit: 413', async () => {
    const body = JSON.stringify({ type: 'x', pad: 'x'.repeat(100_000) });
    expectProblem(await send(body, signed(body)), 'payload_too_large');
  });
});

describe('the event', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', 'payment.succeeded'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '7'],
    ['no type', '{"data":{}}'],
    ['a type that is no text', '{"type":7}'],
    ['an empty type', '{"type":""}'],
    ['a payment without data', '{"type":"payment.succeeded","timestamp":"x"}'],
    [
      'an amount that is no number',
      JSON.stringify(eventOf({ reservationId: 'r', amount: '1' as never, currency: 'EUR' })),
    ],
    ['a negative amount', JSON.stringify(eventOf({ reservationId: 'r', amount: -1, currency: 'EUR' }))],
    ['no payment id', JSON.stringify(eventOf({ reservationId: 'r', amount: 1, currency: 'EUR' }, { paymentId: '' }))],
    ['a currency that is none', JSON.stringify(eventOf({ reservationId: 'r', amount: 1, currency: 'euros' }))],
  ])('%s: 400 malformed_event', async (_, body) => {
    expectProblem(await deliver(api, body), 'malformed_event');
  });

  test.each(['checkout.session.completed', 'payment.created', '__proto__', 'PAYMENT.SUCCEEDED'])(
    'a type that is not known (%s) is accepted and ignored',
    async (type) => {
      const response = await deliver(api, eventOf({ reservationId: 'r', amount: 1, currency: 'EUR' }, { type }));
      expect([response.statusCode, response.json()]).toEqual([200, { state: 'ignored', outcome: 'unknown_type' }]);
    },
  );

  test.each<[string, unknown]>([
    ['some other text', 'order-4711'],
    ['an id of nothing, in its form', 'no'],
    ['text with a NUL', 'a\u0000b'],
    ['half a surrogate pair', '\ud800'],
    ['300 characters', 'x'.repeat(300)],
    ['empty', ''],
    ['a number', 4711],
    ['null', null],
    ['missing', undefined],
    ['an object', { id: 'x' }],
  ])('money for a reservation id that can be none (%s) is stored and owed back, 2xx', async (_, reservationId) => {
    const event = eventOf({ reservationId: reservationId as string, amount: 700, currency: 'EUR' });
    const response = await deliver(api, event);
    expect([response.statusCode, response.json()]).toEqual([
      200,
      { state: 'applied', outcome: 'refund_owed: unknown_reservation' },
    ]);
    expect(await stored(event.data.paymentId)).toMatchObject([
      { status: 'OWED' },
      { amount: '700', reason: 'unknown_reservation' },
    ]);
  });

  test.each<[string, { amount?: number; currency?: string }]>([
    ['one minor unit less', { amount: 49_899 }],
    ['one minor unit more', { amount: 49_901 }],
    ['another currency', { currency: 'USD' }],
    ['zero', { amount: 0 }],
  ])('%s: not paid, owed back, and the buyer sees it', async (_, changes) => {
    const won = await ordered();
    expect((await deliver(api, eventOf(won, changes))).json()).toMatchObject({
      outcome: 'refund_owed: amount_mismatch',
    });
    expect(await statusOf(won)).toMatchObject({
      status: 'PENDING_PAYMENT',
      refund: changes.amount === 0 ? 'SUCCEEDED' : 'PENDING',
    });
  });

  test('paid while the order is still in the queue: kept, then PAID', async () => {
    const won = await win(api, saleId, newId());
    const event = eventOf({ ...won, reservationId: won.reservationId.toUpperCase() });
    expect((await deliver(api, event)).json()).toEqual({ state: 'parked', outcome: 'no_order_yet' });
    expect(await statusOf(won)).toMatchObject({ status: 'QUEUED' });
    await record(api, won);
    await expect.poll(async () => (await statusOf(won)).status, { timeout: 15_000 }).toBe('PAID');
  });

  test('declined, then paid by another card: PAID', async () => {
    const won = await ordered();
    expect((await deliver(api, eventOf(won, { type: 'payment.failed' }))).statusCode).toBe(200);
    expect((await deliver(api, eventOf(won))).json()).toMatchObject({ outcome: 'paid' });
    expect(await statusOf(won)).toMatchObject({ status: 'PAID' });
  });

  test('a second event of another kind for the same payment: PAID once, no refund', async () => {
    const won = await ordered();
    const event = eventOf(won);
    await deliver(api, event);
    expect((await deliver(api, event)).json()).toEqual({ state: 'ignored', outcome: 'known_payment' });
    expect(await stored(event.data.paymentId)).toEqual([{ status: 'APPLIED', reservation_id: won.reservationId }]);
  });

  test('the provider gives the payment up: the hold is free at once', async () => {
    const won = await ordered();
    expect((await deliver(api, eventOf(won, { type: 'payment.canceled' }))).json()).toMatchObject({
      outcome: 'cancelled',
    });
    expect(await statusOf(won)).toMatchObject({ status: 'CANCELLED', reason: 'payment_canceled' });
    expect((await win(api, saleId, won.userId)).outcome).toBe('ok');
  });

  test('the whole way signs with what the library of the standard signs with', () => {
    const at = new Date();
    const headers = signed('{}', { id: 'evt-1', at });
    expect(new Webhook(SECRET).verify('{}', headers)).toEqual({});
  });
});

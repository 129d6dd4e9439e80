/** Stripe: the page to pay on, and its events, against a server that speaks Stripe's API. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import {
  chargeOf,
  intentOf,
  KEY,
  SECRET,
  startStripe,
  stripeEvent,
  stripeSettings,
  stripeSignature,
} from '../support/stripe.ts';
import type { Session, StripeStandIn } from '../support/stripe.ts';
import { admin, ask, asShop, expectProblem, newId, putSale, record, reservationUrl, testApi, win } from './api.ts';
import type { TestApi, Won } from './api.ts';

const NEXT_SECRET = 'whsec_of_the_next_tests';

let stores: Stores;
let stripe: StripeStandIn;
let api: TestApi;
const settingsFor = (url: string) => ({
  ...stripeSettings(url),
  STRIPE_SECRET_KEY: `${KEY} sk_test_of_the_next`,
  STRIPE_WEBHOOK_SECRET: `${SECRET} ${NEXT_SECRET}`,
});
beforeAll(async () => {
  stores = await freshStores();
  stripe = await startStripe();
  api = await testApi({ ...stores.env, ...settingsFor(stripe.url) });
});
beforeEach(() => {
  stripe.calls.length = 0;
  Object.assign(stripe.state, { faults: [], keys: [KEY], refundStatus: 'succeeded' });
});
afterAll(async () => {
  await api.close();
  await stripe.close();
  await stores.drop();
});

const pageUrl = (won: Pick<Won, 'saleId' | 'reservationId' | 'userId'>) =>
  reservationUrl(won).replace('?', '/checkout?');
const open = (won: Pick<Won, 'saleId' | 'reservationId' | 'userId'>) => ask(api, pageUrl(won), { method: 'POST' });
const sessionOf = ({ reservationId }: Pick<Won, 'reservationId'>): Session => {
  const found = [...stripe.sessions.values()].filter(({ metadata }) => metadata['reservationId'] === reservationId);
  expect(found, 'one session of the reservation').toHaveLength(1);
  return found[0] as Session;
};
const statusOf = async (won: Won) => (await ask(api, reservationUrl(won))).json<{ status: string; refund?: string }>();
const newWon = async (changes: Record<string, unknown> = {}, qty = 1) =>
  win(api, await putSale(api, changes), 'ann', qty);

function send(payload: string, header = stripeSignature(payload)) {
  const headers = { 'content-type': 'application/json', 'stripe-signature': header };
  return api.app.inject({ method: 'POST', url: '/webhooks/stripe', headers, payload });
}
const deliver = (type: string, object: object, but: object = {}) =>
  send(JSON.stringify(stripeEvent(type, object, but)));
const outcomeOf = async (answer: ReturnType<typeof deliver>) => {
  const { statusCode, body } = await answer;
  expect(statusCode, body).toBe(200);
  return (JSON.parse(body) as { outcome: string }).outcome;
};

describe('the page', () => {
  test('of a hold that is still in the queue: amount, currency, metadata, an end that Stripe accepts', async () => {
    const won = await newWon({ name: 'Phone' }, 2);
    const before = Math.floor(Date.now() / 1000);
    const answer = await open(won);
    expect(answer.statusCode, answer.body).toBe(200);
    const session = sessionOf(won);
    expect(answer.json()).toEqual({
      ...{ reservationId: won.reservationId, amount: won.amount, currency: won.currency, expiresAt: won.expiresAt },
      url: session.url,
    });
    expect(session).toMatchObject({ amount_total: won.amount, currency: 'eur' });
    const { reservationId, saleId, userId } = won;
    expect(session.metadata).toEqual({ reservationId, saleId, userId });
    expect(session.expires_at - before).toBeGreaterThanOrEqual(31 * 60 - 1);
    const [call] = stripe.calls;
    expect(call?.form.get('payment_intent_data[metadata][reservationId]')).toBe(reservationId);
    expect(call?.form.get('line_items[0][price_data][product_data][name]')).toBe('2 × Phone');
    expect(call?.form.get('success_url')).toBe(`https://shop.example/thanks?of=${reservationId}`);
    expect(call?.form.get('cancel_url')).toBe(`https://shop.example/sales/${saleId}`);
    expect(call?.auth).toBe(KEY);
  });

  test('is the same when asked again, one after the other and twenty at once, in whatever case the id is', async () => {
    const won = await newWon();
    const upper = { ...won, reservationId: won.reservationId.toUpperCase() };
    const answers = await Promise.all([...Array.from({ length: 20 }, () => open(won)), open(upper)]);
    answers.push(await open(won));
    expect(new Set(answers.map(({ body }) => body)).size, answers.map(({ body }) => body).join('\n')).toBe(1);
    expect(sessionOf(won).url).toBe(answers[0].json<{ url: string }>().url);
    expect(new Set(stripe.calls.map(({ key }) => key)).size).toBe(1);
  });

  test('is the same when Stripe’s answer was lost', async () => {
    const won = await newWon();
    stripe.state.faults = [{ path: '/v1/checkout/sessions', lost: true, times: 2 }]; // the library asks once more by itself
    expectProblem(await open(won), 'payment_provider_unavailable');
    expect((await open(won)).json()).toMatchObject({ url: sessionOf(won).url });
  });

  test('that was never made gets a new end once Stripe would not take its first one any more', async () => {
    const won = await newWon();
    stripe.state.faults = [{ path: '/v1/checkout/sessions', status: 500 }];
    expectProblem(await open(won), 'payment_provider_unavailable');
    await api.db.query(
      `update checkout_pages set expires_at = now() + interval '29 minutes' where reservation_id = $1`,
      [won.reservationId],
    );
    expect((await open(won)).statusCode).toBe(200);
    expect(sessionOf(won).expires_at - Date.now() / 1000).toBeGreaterThan(30 * 60);
  });

  test('lives as long as a long hold does, and never longer than Stripe lets it', async () => {
    const hours = async (holdSeconds: number) => {
      const won = await newWon({ holdSeconds });
      await open(won);
      return (sessionOf(won).expires_at - Date.now() / 1000) / 3600;
    };
    expect(await hours(7200)).toBeCloseTo(2, 1);
    expect(await hours(604_800)).toBeLessThan(24);
  });

  test.each([401, 403, 409, 429, 500, 503])('Stripe answers %i: 503, and again later', async (status) => {
    const won = await newWon();
    stripe.state.faults = [{ path: '/v1/checkout/sessions', status, times: 2 }];
    expectProblem(await open(won), 'payment_provider_unavailable');
    stripe.state.faults = [];
    expect((await open(won)).statusCode).toBe(200);
  });

  test('what Stripe refuses for good is 502, with Stripe’s words', async () => {
    stripe.state.faults = [{ path: '/v1/checkout/sessions', status: 400 }];
    const problem = expectProblem(await open(await newWon()), 'payment_provider_refused');
    expect(problem['detail']).toMatch(/400 on purpose/);
  });

  test('a key that was replaced: the next one is taken', async () => {
    stripe.state.keys = ['sk_test_of_the_next'];
    const won = await newWon();
    expect((await open(won)).statusCode).toBe(200);
    expect(stripe.calls.map(({ auth }) => auth)).toEqual([KEY, 'sk_test_of_the_next']);
  });

  test('not for what is not this buyer’s, is paid, or is over', async () => {
    const won = await newWon();
    expectProblem(await open({ ...won, userId: 'bob' }), 'reservation_not_found');
    expectProblem(await open({ ...won, reservationId: 'x' }), 'reservation_not_found');
    expectProblem(await ask(api, pageUrl(won), { method: 'POST', headers: {} }), 'unauthorized');
    expectProblem(await ask(api, pageUrl(won).replace(/\?.*/, ''), { method: 'POST' }), 'invalid_request');
    await open(won);
    await record(api, won);
    const intent = stripe.pay(sessionOf(won));
    expect(await outcomeOf(deliver('payment_intent.succeeded', intentOf(intent, sessionOf(won))))).toBe('paid');
    expectProblem(await open(won), 'already_paid');
    await admin(api, 'POST', `/${won.saleId}/orders/${won.reservationId}/refund`, { returnUnits: true });
    expectProblem(await open(won), 'reservation_ended');
    const other = await win(api, won.saleId, 'bob');
    await ask(api, reservationUrl(other), { method: 'DELETE' });
    expectProblem(await open(other), 'reservation_ended');
    const late = await newWon({ holdSeconds: 1 });
    await expect.poll(async () => (await open(late)).statusCode, { timeout: 10_000 }).toBe(409);
    expectProblem(await open(late), 'reservation_ended');
  });

  test('is only there where a provider makes it', async () => {
    const other = await testApi(stores.env);
    try {
      const url = `/sales/${newId()}/reservations/00000000-0000-4000-8000-000000000000/checkout?userId=u`;
      expectProblem(await other.app.inject({ method: 'POST', url, headers: asShop }), 'not_found');
      expectProblem(await other.app.inject({ method: 'POST', url: '/webhooks/stripe', payload: {} }), 'not_found');
    } finally {
      await other.close();
    }
  });
});

describe('events', () => {
  /** A reservation with its order, its page, and money on it. */
  async function paidOnPage(recorded = true) {
    const won = await newWon();
    await open(won);
    if (recorded) await record(api, won);
    const session = sessionOf(won);
    const intent = stripe.pay(session);
    return { won, session, intent };
  }

  test('two kinds of event for one payment: PAID once, nothing owed back, in either order', async () => {
    for (const sessionFirst of [true, false]) {
      const { won, session, intent } = await paidOnPage();
      const both = [
        () => deliver('checkout.session.completed', session),
        () => deliver('payment_intent.succeeded', intentOf(intent, session)),
      ];
      if (!sessionFirst) both.reverse();
      const outcomes = [];
      for (const one of both) outcomes.push(await outcomeOf(one()));
      expect(outcomes).toEqual(['paid', 'known_payment']);
      expect(await statusOf(won)).toMatchObject({ status: 'PAID' });
      expect((await statusOf(won)).refund).toBeUndefined();
    }
  });

  test('while the order is still in the queue: kept, then PAID', async () => {
    const { won, session } = await paidOnPage(false);
    expect(await outcomeOf(deliver('checkout.session.completed', session))).toBe('no_order_yet');
    await record(api, won);
    await expect.poll(async () => (await statusOf(won)).status, { timeout: 10_000 }).toBe('PAID');
  });

  test('a transfer that is on its way pays when it has come', async () => {
    const { won, session } = await paidOnPage();
    expect(await outcomeOf(deliver('checkout.session.completed', { ...session, payment_status: 'unpaid' }))).toBe(
      'unknown_type',
    );
    expect(await statusOf(won)).toMatchObject({ status: 'PENDING_PAYMENT' });
    expect(await outcomeOf(deliver('checkout.session.async_payment_succeeded', session))).toBe('paid');
  });

  test('a card declined, then another accepted', async () => {
    const { won, session, intent } = await paidOnPage();
    expect(await outcomeOf(deliver('payment_intent.payment_failed', intentOf(intent, session)))).toBe('declined');
    expect(await outcomeOf(deliver('payment_intent.succeeded', intentOf(intent, session)))).toBe('paid');
    expect(await statusOf(won)).toMatchObject({ status: 'PAID' });
  });

  test.each(['checkout.session.expired', 'payment_intent.canceled'])('%s frees the hold', async (type) => {
    const won = await newWon();
    await open(won);
    await record(api, won);
    const session = sessionOf(won);
    const object = type.startsWith('checkout') ? session : intentOf('pi_never', session);
    expect(await outcomeOf(deliver(type, object))).toBe('cancelled');
    expect(await statusOf(won)).toMatchObject({ status: 'CANCELLED', reason: 'payment_canceled' });
  });

  test('money that comes after the hold is over is owed back', async () => {
    const { won, session } = await paidOnPage();
    await ask(api, reservationUrl(won), { method: 'DELETE' });
    expect(await outcomeOf(deliver('checkout.session.completed', session))).toBe('refund_owed: cancelled');
    expect(await statusOf(won)).toMatchObject({ status: 'CANCELLED', refund: 'PENDING' });
  });

  test('a refund made by hand: the order is REFUNDED and nothing is sold again; of a part, it is only remembered', async () => {
    const { won, session, intent } = await paidOnPage();
    await deliver('checkout.session.completed', session);
    expect(await outcomeOf(deliver('charge.refunded', chargeOf(intent, session, 100)))).toBe('partial_refund');
    expect(await statusOf(won)).toMatchObject({ status: 'PAID' });
    expect(await outcomeOf(deliver('charge.refunded', chargeOf(intent, session)))).toBe('refunded_at_provider');
    expect(await statusOf(won)).toMatchObject({ status: 'REFUNDED', refund: 'SUCCEEDED' });
    const { ledger, gate } = (await admin(api, 'GET', `/${won.saleId}`)).json<
      Record<string, { total: number; stock: number }>
    >();
    expect([ledger?.total, gate?.total, gate?.stock]).toEqual([9, 9, 9]);
  });

  test.each(['refund.failed', 'charge.refund.updated'])('%s: a person must look', async (type) => {
    const { won, session, intent } = await paidOnPage();
    await deliver('checkout.session.completed', session);
    await admin(api, 'POST', `/${won.saleId}/orders/${won.reservationId}/refund`, { returnUnits: false });
    const failed = {
      object: 'refund',
      id: newId(),
      payment_intent: intent,
      amount: won.amount,
      currency: 'eur',
      metadata: {},
    };
    expect(await outcomeOf(deliver('charge.refunded', chargeOf(intent, session)))).toBe('refund SUCCEEDED');
    expect(await outcomeOf(deliver(type, { ...failed, status: 'failed' }))).toBe('refund FAILED');
    expect(await outcomeOf(deliver(type, { ...failed, status: 'succeeded' }))).toBe('unknown_type');
    expect(await statusOf(won)).toMatchObject({ status: 'REFUNDED', refund: 'FAILED' });
  });

  test('payments of the account that are none of ours are left alone', async () => {
    const foreign = { ...intentOf('pi_foreign', { amount_total: 100, currency: 'eur', metadata: {} } as Session) };
    const session = {
      id: 'cs_foreign',
      payment_status: 'paid',
      payment_intent: 'pi_foreign',
      amount_total: 1,
      currency: 'eur',
    };
    for (const [type, object] of [
      ['payment_intent.succeeded', foreign],
      ['checkout.session.completed', { ...session, metadata: {} }],
      ['checkout.session.completed', { ...session, metadata: null }],
      ['charge.refunded', chargeOf('pi_foreign', { amount_total: 1, currency: 'eur', metadata: {} } as Session)],
      ['customer.created', { id: 'cus_1' }],
    ] as const) {
      expect(await outcomeOf(deliver(type, object)), type).toBe('unknown_type');
    }
    const { rowCount } = await api.db.query(`select 1 from payments where payment_id like '%foreign'`);
    expect(rowCount).toBe(0);
  });

  test('currencies that Stripe counts in hundredths although they have none', async () => {
    const won = await newWon({ price: { amount: 5000, currency: 'ISK' } });
    await open(won);
    await record(api, won);
    const session = sessionOf(won);
    expect(session).toMatchObject({ amount_total: 500_000, currency: 'isk' });
    stripe.pay(session);
    expect(await outcomeOf(deliver('checkout.session.completed', session))).toBe('paid');
  });

  test('the same event twenty times at once: one transition, 2xx for all', async () => {
    const { won, session } = await paidOnPage();
    const payload = JSON.stringify(stripeEvent('checkout.session.completed', session));
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => outcomeOf(send(payload))));
    expect(outcomes.filter((outcome) => outcome === 'paid')).toHaveLength(1);
    expect(await statusOf(won)).toMatchObject({ status: 'PAID' });
  });
});

describe('who sent it', () => {
  const payload = JSON.stringify(stripeEvent('customer.created', {}));
  const now = () => Math.floor(Date.now() / 1000);

  test('each of the secrets is good, another is not', async () => {
    for (const secret of [SECRET, NEXT_SECRET]) {
      expect((await send(payload, stripeSignature(payload, { secret }))).statusCode).toBe(200);
    }
    expectProblem(await send(payload, stripeSignature(payload, { secret: 'whsec_of_somebody' })), 'bad_signature');
  });

  test('not over other bytes, nor without a signature', async () => {
    expectProblem(await send(`${payload} `, stripeSignature(payload)), 'bad_signature');
    for (const header of ['', 't=1', `t=${now()},v1=`, 'nonsense'])
      expectProblem(await send(payload, header), 'bad_signature');
    expectProblem(await api.app.inject({ method: 'POST', url: '/webhooks/stripe', payload }), 'bad_signature');
  });

  test('five minutes late are too late, with either secret', async () => {
    expect((await send(payload, stripeSignature(payload, { timestamp: now() - 290 }))).statusCode).toBe(200);
    for (const secret of [SECRET, NEXT_SECRET]) {
      const late = stripeSignature(payload, { secret, timestamp: now() - 310 });
      expectProblem(await send(payload, late), 'timestamp_out_of_range');
    }
  });

  test('an event of live mode where the key is a test key: refused by name', async () => {
    const problem = expectProblem(await deliver('customer.created', {}, { livemode: true }), 'wrong_mode');
    expect(problem['detail']).toMatch(/is of live mode, the key in STRIPE_SECRET_KEY of test mode/);
  });

  test('signed, and not an event', async () => {
    for (const text of ['{', '{}', '[]', 'null', '"x"', '{"id":1,"type":"x","livemode":false}']) {
      expectProblem(await send(text), 'malformed_event');
    }
    const bad = { payment_status: 'paid', payment_intent: 'pi 1', amount_total: -1, currency: 'eur' };
    const metadata = { reservationId: 'x' };
    expectProblem(await deliver('checkout.session.completed', { id: 'cs', ...bad, metadata }), 'malformed_event');
  });
});

/** Pages to pay on are closed when their hold ends, and Stripe's refunds are made once: a server that speaks its API. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { keepOnce, newMemory } from '../../src/keeper/keeper.ts';
import { closePages } from '../../src/keeper/pages.ts';
import { payRefunds } from '../../src/keeper/refund.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { openCheckout } from '../../src/operations/checkout.ts';
import type { Checkout, PaymentProvider } from '../../src/provider/port.ts';
import { keeperOptions } from '../../src/wiring.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { event, expectSound, madeUp, moveBack, newSale, openHouse, win, type House } from '../ledger/house.ts';
import { KEY, startStripe, type StripeStandIn } from '../support/stripe.ts';

const OPTIONS = { backoffMs: 10_000, batch: 20 };
const REFUNDS = { ...OPTIONS, keyLifetimeMs: 3_600_000 };

let house: House;
let stripe: StripeStandIn;
let provider: PaymentProvider;
let checkout: Checkout;
beforeAll(async () => {
  stripe = await startStripe();
  house = await openHouse({
    env: {
      ...{ PAYMENT_PROVIDER: 'stripe', STRIPE_SECRET_KEY: KEY, STRIPE_API_BASE: stripe.url },
      ...{ CHECKOUT_SUCCESS_URL: 'https://shop.example/a', CHECKOUT_CANCEL_URL: 'https://shop.example/b' },
      PROVIDER_TIMEOUT_MS: '1000',
    },
  });
  if (!house.wired.provider?.checkout) throw new Error('Stripe makes pages');
  ({ provider } = house.wired as { provider: PaymentProvider });
  checkout = house.wired.provider.checkout;
});
beforeEach(() => {
  stripe.calls.length = 0;
  Object.assign(stripe.state, { faults: [], refundStatus: 'succeeded' });
});
afterAll(async () => {
  await house.close();
  await stripe.close();
});

/** A hold with a page; its order is recorded if asked for. */
async function withPage(recorded = true): Promise<Hold> {
  const hold = await win(house, await newSale(house), 'ann');
  if (recorded) await recordHolds(house.stores, [hold]);
  await openCheckout(house.stores, checkout, hold, 5000);
  return hold;
}
const sessionOf = (hold: Hold) => {
  const found = [...stripe.sessions.values()].find(({ metadata }) => metadata['reservationId'] === hold.reservationId);
  if (!found) throw new Error('there is no page');
  return found;
};
const pass = () => closePages(house.stores, checkout, OPTIONS);
const again = (hold: Hold) =>
  house.db.query('update checkout_pages set next_attempt_at = now() where reservation_id = $1', [hold.reservationId]);

test.each<[string, (hold: Hold) => Promise<unknown>]>([
  ['expired', (hold) => moveBack(house, hold, 3_600_000).then(() => sweep(house.stores, 10))],
  ['given up', (hold) => cancelReservation(house.stores, hold)],
  ['paid in another way', (hold) => applyEvent(house.pool, event(hold, 'payment.succeeded'))],
])('the page of a hold that is %s is closed, once; one that is still to be paid is not', async (_, end) => {
  const [hold, other] = [await withPage(), await withPage()];
  expect(await pass()).toEqual({ closed: 0, again: 0 });
  await end(hold);
  expect(await pass()).toEqual({ closed: 1, again: 0 });
  expect([sessionOf(hold).status, sessionOf(other).status]).toEqual(['expired', 'open']);
  await again(hold);
  expect(await pass()).toEqual({ closed: 0, again: 0 });
  await cancelReservation(house.stores, other);
  await pass();
});

test('a hold whose order never came: its page is closed when its time is over', async () => {
  const hold = await withPage(false);
  expect(await pass()).toEqual({ closed: 0, again: 0 });
  await house.db.query(`update checkout_pages set hold_expires_at = now() - interval '1 s' where reservation_id = $1`, [
    hold.reservationId,
  ]);
  expect(await pass()).toEqual({ closed: 1, again: 0 });
  expect(sessionOf(hold).status).toBe('expired');
});

test('one that was paid on is closed already: that is no failure', async () => {
  const hold = await withPage();
  const paymentId = stripe.pay(sessionOf(hold));
  await applyEvent(house.pool, event(hold, 'payment.succeeded', { paymentId }));
  expect(await pass()).toEqual({ closed: 1, again: 0 });
  expect(sessionOf(hold).status).toBe('complete');
});

test('one that Stripe does not know (any more) is closed to us', async () => {
  const hold = await withPage();
  stripe.sessions.delete(sessionOf(hold).id);
  await cancelReservation(house.stores, hold);
  expect(await pass()).toEqual({ closed: 1, again: 0 });
});

test('while Stripe is away it is tried again later, with growing pauses, and the others are closed', async () => {
  const [hold, other] = [await withPage(), await withPage()];
  for (const each of [hold, other]) await cancelReservation(house.stores, each);
  stripe.state.faults = [{ path: `/v1/checkout/sessions/${sessionOf(hold).id}`, status: 500 }];
  expect(await pass()).toEqual({ closed: 1, again: 1 });
  expect(house.log.at(-1)).toMatchObject({ level: 40, msg: 'a page to pay on is not closed yet: it is tried again' });
  expect(await pass()).toEqual({ closed: 0, again: 0 }); // not before its time
  await again(hold);
  expect(await pass()).toEqual({ closed: 1, again: 0 });
  expect([sessionOf(hold).status, sessionOf(other).status]).toEqual(['expired', 'expired']);
});

test('a Stripe that hangs does not hold up the keeper', async () => {
  const hold = await withPage();
  await cancelReservation(house.stores, hold);
  const due = await win(house, hold.saleId, 'bob');
  await recordHolds(house.stores, [due]);
  await moveBack(house, due, 3_600_000);
  let answer: () => void = () => undefined;
  const hanging: Checkout = { ...checkout, close: () => new Promise<void>((closed) => (answer = closed)) };
  const { stores, sqs, leases } = house.wired;
  const memory = newMemory();
  const deps = { stores, sqs, leases, provider: { ...provider, checkout: hanging } };
  await keepOnce(deps, keeperOptions(house.config), memory);
  const { rows } = await house.db.query('select status from sale_orders where reservation_id = $1', [
    due.reservationId,
  ]);
  expect(rows).toEqual([{ status: 'EXPIRED' }]);
  expect(memory.closing).toBeDefined();
  answer();
  await memory.closing;
  await leases.stop();
});

/** Money that was captured at Stripe, for nothing. @returns the payment's id */
async function owed(): Promise<string> {
  const paymentId = `pi_${randomUUID().replaceAll('-', '')}`;
  const hold = madeUp('none', 'nobody');
  stripe.captured.set(paymentId, { amount: hold.amount, currency: 'eur' });
  await applyEvent(house.pool, event(hold, 'payment.succeeded', { paymentId, reservationId: 'not-ours' }));
  return paymentId;
}
const refundOf = async (paymentId: string) => {
  const { rows } = await house.db.query<{ id: string; status: string; error: string | null }>(
    'select refund_id as id, status, last_error as error from refunds where payment_id = $1',
    [paymentId],
  );
  return rows[0];
};
const made = (paymentId: string) => stripe.refunds.filter(({ payment_intent: of }) => of === paymentId);
const due = (paymentId: string, ageMs = 0) =>
  house.db.query(
    `update refunds set next_attempt_at = now(), created_at = created_at - $2 * interval '1 ms' where payment_id = $1`,
    [paymentId, ageMs],
  );
const pay = () => payRefunds(house.stores, provider, REFUNDS);

test('Stripe made the refund and its answer was lost: the same key again, one refund', async () => {
  const paymentId = await owed();
  stripe.state.faults = [{ path: '/v1/refunds', lost: true, times: 2 }];
  expect(await pay()).toMatchObject({ again: 1 });
  await due(paymentId);
  expect(await pay()).toMatchObject({ succeeded: 1 });
  expect(made(paymentId)).toHaveLength(1);
  const { id = '' } = (await refundOf(paymentId)) ?? {};
  expect(stripe.calls.map(({ key }) => key)).toEqual([id, id, id]); // the library asks once more by itself
});

test('a retry that comes late looks the refund up first', async () => {
  const paymentId = await owed();
  stripe.state.faults = [{ path: '/v1/refunds', lost: true, times: 2 }];
  await pay();
  await due(paymentId, 2 * REFUNDS.keyLifetimeMs);
  stripe.calls.length = 0;
  expect(await pay()).toMatchObject({ succeeded: 1 });
  expect(stripe.calls.map(({ method }) => method)).toEqual(['GET']);
  expect(made(paymentId)).toHaveLength(1);
});

test('pending: asked about until it is done', async () => {
  const paymentId = await owed();
  stripe.state.refundStatus = 'pending';
  expect(await pay()).toMatchObject({ submitted: 1 });
  for (const refund of made(paymentId)) refund.status = 'succeeded';
  await due(paymentId);
  expect(await pay()).toMatchObject({ succeeded: 1 });
});

test('given back by hand before: done; refused for good: FAILED, with Stripe’s words', async () => {
  const paymentId = await owed();
  const { amount } = stripe.captured.get(paymentId) ?? { amount: 0 };
  stripe.refunds.push({
    id: 're_by_hand',
    object: 'refund',
    amount,
    currency: 'eur',
    payment_intent: paymentId,
    status: 'succeeded',
    metadata: {},
  });
  expect(await pay()).toMatchObject({ succeeded: 1 });
  expect(made(paymentId)).toHaveLength(1);
  const unknown = await owed();
  stripe.captured.delete(unknown);
  expect(await pay()).toMatchObject({ failed: 1 });
  expect(await refundOf(unknown)).toMatchObject({
    status: 'FAILED',
    error: expect.stringMatching(/404 No such payment_intent/) as string,
  });
});

test.each([401, 429, 500])('Stripe answers %i: tried again', async (status) => {
  const paymentId = await owed();
  stripe.state.faults = [{ path: '/v1/refunds', status }];
  expect(await pay()).toMatchObject({ again: 1 });
  await due(paymentId);
  expect(await pay()).toMatchObject({ succeeded: 1 });
});

test('Stripe hangs: given up within the time limit, and tried again', async () => {
  const paymentId = await owed();
  stripe.state.faults = [{ path: '/v1/refunds', hangMs: 3000 }];
  expect(await pay()).toMatchObject({ again: 1 });
  expect(stripe.calls).toHaveLength(1); // nothing is sent again by the library
  await due(paymentId);
  expect(await pay()).toMatchObject({ succeeded: 1 });
});

test('a test key in production is warned of, a live one is not', () => {
  const warned = (key: string) => {
    const other = house.another({ NODE_ENV: 'production', STRIPE_SECRET_KEY: key });
    void other.close();
    return other.log.some(({ msg }) => msg.includes('STRIPE_SECRET_KEY is a test key'));
  };
  expect([warned(KEY), warned('sk_live_of_the_tests')]).toEqual([true, false]);
});

test('the audit finds everything sound', async () => {
  await expectSound(house);
});

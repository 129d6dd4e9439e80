/**
 * Stripe's events in our words. docs/payment.md has the table, and a test compares the two.
 *
 * A shop's account has payments that are none of ours: what does not name a reservation in its metadata is ignored, and
 * never given back.
 */
import type Stripe from 'stripe';
import { z } from 'zod';
import { PaymentEvent, type KnownEvent, type PaymentEventType } from '../domain/payment.ts';
import { BadWebhook } from './port.ts';

/** Stripe's own recommendation, and its library's default. */
const TOLERANCE_SECONDS = 300;

/** What every event of Stripe's has. */
const Shape = z.looseObject({
  id: z.string(),
  type: z.string(),
  created: z.int(),
  livemode: z.boolean(),
  data: z.looseObject({ object: z.looseObject({}) }),
});

type Headers = Record<string, string | string[] | undefined>;

/**
 * Checks the signature over the raw bytes by one of the secrets, and that the event is of the mode of our keys.
 * @throws {BadWebhook}
 */
export function readEvent(
  webhooks: Stripe.Webhooks,
  body: Buffer,
  headers: Headers,
  { secrets, live }: { secrets: string[]; live: boolean },
): KnownEvent | undefined {
  const given = verify(webhooks, body, headers['stripe-signature'], secrets);
  const shape = Shape.safeParse(given);
  if (!shape.success) throw new BadWebhook('malformed_event', shape.error.message);
  const event = given as Stripe.Event;
  if (event.livemode !== live) {
    const mode = (is: boolean) => (is ? 'live' : 'test');
    throw new BadWebhook(
      'wrong_mode',
      `event ${event.id} is of ${mode(event.livemode)} mode, the key in STRIPE_SECRET_KEY of ${mode(live)} mode: the endpoint of the other mode leads here`,
    );
  }
  const found = translate(event);
  return found && checked(event, found);
}

function verify(
  webhooks: Stripe.Webhooks,
  body: Buffer,
  signature: string | string[] | undefined,
  secrets: string[],
): unknown {
  let why = 'there is no signature';
  for (const secret of secrets) {
    try {
      return webhooks.constructEvent(body, String(signature ?? ''), secret, TOLERANCE_SECONDS);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      // It fits, and what it signs is no event: not JSON, or a notification of another kind.
      if (error instanceof SyntaxError || error.message.includes('thin event')) {
        throw new BadWebhook('malformed_event', error.message);
      }
      why = error.message.split('\n')[0] ?? '';
      // A signature that fits, and is late: no other secret will do better.
      if (/timestamp/i.test(why) && /tolerance/i.test(why)) throw new BadWebhook('timestamp_out_of_range', why);
    }
  }
  throw new BadWebhook('bad_signature', why);
}

type Found = { type: PaymentEventType; paymentId: string; reservationId: string; amount: number; currency: string };

/** The same rules as for every other provider's events. */
function checked({ id, type, created }: Stripe.Event, found: Found): KnownEvent {
  const { type: ours, ...data } = found;
  const event = PaymentEvent.safeParse({ type: ours, timestamp: new Date(created * 1000).toISOString(), data });
  if (!event.success) throw new BadWebhook('malformed_event', `${type} ${id}: ${event.error.message}`);
  const { paymentId, reservationId, amount, currency } = event.data.data;
  return { eventId: id, type: ours, paymentId, reservationId, amount, currency };
}

function translate(event: Stripe.Event): Found | undefined {
  // eslint-disable-next-line @typescript-eslint/switch-exhaustiveness-check -- two hundred others are none of ours
  switch (event.type) {
    case 'checkout.session.completed':
      // Unpaid: the money is on its way (a bank transfer, say), and async_payment_succeeded says when it came.
      return event.data.object.payment_status === 'unpaid'
        ? undefined
        : ofSession('payment.succeeded', event.data.object);
    case 'checkout.session.async_payment_succeeded':
      return ofSession('payment.succeeded', event.data.object);
    case 'checkout.session.expired':
      return ofSession('payment.canceled', event.data.object);
    case 'payment_intent.succeeded':
      return ofIntent('payment.succeeded', event.data.object, event.data.object.amount_received);
    case 'payment_intent.payment_failed':
      return ofIntent('payment.failed', event.data.object, event.data.object.amount);
    case 'payment_intent.canceled':
      return ofIntent('payment.canceled', event.data.object, event.data.object.amount);
    case 'charge.refunded':
      return ofCharge(event.data.object);
    case 'refund.failed':
    case 'charge.refund.updated':
      return ofRefund(event.data.object);
    default:
      return undefined;
  }
}

const idOf = (named: string | { id: string } | null) => (typeof named === 'string' ? named : (named?.id ?? undefined));

/** The payment is known by its intent, under which every kind of event names it; one of nothing has no intent. */
function ofSession(type: PaymentEventType, session: Stripe.Checkout.Session): Found | undefined {
  const { id, payment_intent: intent, amount_total: amount, currency, metadata } = session;
  const reservationId = metadata?.['reservationId'];
  if (reservationId === undefined || amount === null || currency === null) return undefined;
  return { type, paymentId: idOf(intent) ?? id, reservationId, ...money(amount, currency) };
}

function ofIntent(type: PaymentEventType, { id, currency, metadata }: Stripe.PaymentIntent, amount: number) {
  const { reservationId } = metadata;
  return reservationId === undefined ? undefined : { type, paymentId: id, reservationId, ...money(amount, currency) };
}

/** Also of a refund that was made by hand. The amount is all that was given back of the charge so far. */
function ofCharge({ payment_intent: intent, amount_refunded: amount, currency, metadata }: Stripe.Charge) {
  const paymentId = idOf(intent);
  const { reservationId } = metadata;
  if (paymentId === undefined || reservationId === undefined) return undefined;
  return { type: 'refund.succeeded' as const, paymentId, reservationId, ...money(amount, currency) };
}

/** A refund does not carry its payment's metadata: it is found by the payment, and named after it. */
function ofRefund({ payment_intent: intent, amount, currency, status, metadata }: Stripe.Refund): Found | undefined {
  const paymentId = idOf(intent);
  if (paymentId === undefined || (status !== 'failed' && status !== 'canceled')) return undefined;
  const reservationId = metadata?.['reservationId'] ?? paymentId;
  return { type: 'refund.failed', paymentId, reservationId, ...money(amount, currency) };
}

/**
 * Currencies without minor units of which Stripe, for old times' sake, counts hundredths all the same
 * (https://docs.stripe.com/currencies#special-cases).
 */
const IN_HUNDREDTHS = new Set(['ISK', 'UGX']);

/** ISO 4217's minor units as Stripe counts them. */
export const toStripe = (amount: number, currency: string) => (IN_HUNDREDTHS.has(currency) ? amount * 100 : amount);

function money(amount: number, given: string) {
  const currency = given.toUpperCase();
  return { amount: IN_HUNDREDTHS.has(currency) ? amount / 100 : amount, currency };
}

/**
 * Stripe, by its own library: Checkout Sessions to pay on, refunds under idempotency keys. What its events mean is in
 * stripe-events.ts. https://docs.stripe.com/api, version of the library.
 */
import type Stripe from 'stripe';
import type { DueRefund } from '../ledger/refunds.ts';
import { readEvent, toStripe } from './stripe-events.ts';
import {
  ProviderRefused,
  ProviderUnavailable,
  type Checkout,
  type PageRequest,
  type PaymentProvider,
  type RefundAnswer,
} from './port.ts';

export type StripeOptions = {
  /** The first is used; the next when Stripe does not know it (any more). All of one mode. */
  keys: string[];
  /** Secrets of the webhook endpoint; with none there are no webhooks. */
  webhookSecrets: string[];
  /** In place of https://api.stripe.com. */
  apiBase: string | undefined;
  /** Where the buyer is sent afterwards; {RESERVATION_ID} and {SALE_ID} stand for the two. */
  successUrl: string;
  cancelUrl: string;
  timeoutMs: number;
};

type Call = <T>(what: string, ask: (stripe: Stripe) => Promise<T>) => Promise<T>;

const MINUTE_MS = 60_000;
/** Stripe takes 30 minutes to 24 hours; a minute is left for the way, and for asking again with the same words. */
const LIFE = { shortestMs: 31 * MINUTE_MS, longestMs: 24 * 60 * MINUTE_MS - MINUTE_MS };

export function stripeProvider(options: StripeOptions): PaymentProvider {
  const call = caller(options);
  return {
    refund: (refund) => giveBack(call, refund),
    lookUp: async ({ refundId, paymentId }) => {
      const made = await call('list refunds', (stripe) =>
        stripe.refunds.list({ payment_intent: paymentId, limit: 100 }),
      );
      const ours = made.data.find(({ metadata }) => metadata?.['refundId'] === refundId);
      return ours && answerOf(ours);
    },
    checkout: checkout(call, options),
    ...(options.webhookSecrets.length === 0
      ? {}
      : {
          webhooks: {
            path: '/webhooks/stripe',
            read: async (body, headers) =>
              readEvent((await library()).webhooks, body, headers, {
                secrets: options.webhookSecrets,
                live: isLive(options.keys),
              }),
          },
        }),
  };
}

export const isLive = (keys: string[]) => keys.some((key) => /^[a-z]+_live_/.test(key));

/** Loaded by who uses it: it costs a process 35 MB and a sixth of a second. */
const library = async () => (await import('stripe')).default;

async function giveBack(
  call: Call,
  { refundId, paymentId, amount, currency, reason }: DueRefund,
): Promise<RefundAnswer> {
  try {
    return answerOf(
      await call('create a refund', (stripe) =>
        stripe.refunds.create(
          { payment_intent: paymentId, amount: toStripe(amount, currency), metadata: { refundId, reason } },
          { idempotencyKey: refundId },
        ),
      ),
    );
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error;
    // By hand, before we came to it: the money is where it belongs.
    if (codeOf(error) === 'charge_already_refunded') return { status: 'SUCCEEDED', detail: error.message };
    return { status: 'FAILED', detail: error.message };
  }
}

function answerOf({ status, failure_reason: reason }: Stripe.Refund): RefundAnswer {
  if (status === 'succeeded') return { status: 'SUCCEEDED', detail: null };
  if (status === 'failed' || status === 'canceled') return { status: 'FAILED', detail: reason ?? status };
  return { status: 'SUBMITTED', detail: status }; // pending, requires_action: it reports
}

function checkout(call: Call, options: StripeOptions): Checkout {
  return {
    life: LIFE,
    async open(page, timeoutMs) {
      const { reservationId, expiresAt } = page;
      // One key for one question: a page that is asked for with another end is another question.
      const idempotencyKey = `checkout_${reservationId}_${expiresAt}`;
      const { id, url } = await call('create a Checkout Session', (stripe) =>
        stripe.checkout.sessions.create(sessionOf(page, options), { idempotencyKey, timeout: timeoutMs }),
      );
      if (url === null) throw new ProviderUnavailable(`Checkout Session ${id} has no address`);
      return { sessionId: id, url };
    },
    async close(sessionId) {
      try {
        await call('expire a Checkout Session', (stripe) => stripe.checkout.sessions.expire(sessionId));
      } catch (error) {
        // Only an open one can be expired: paid, expired by itself, or unknown to this account, it is closed to us.
        if (!(error instanceof ProviderRefused)) throw error;
        if (codeOf(error) === 'resource_missing') return;
        const { status } = await call('retrieve a Checkout Session', (s) => s.checkout.sessions.retrieve(sessionId));
        if (status === 'open') throw new ProviderUnavailable(error.message, { cause: error });
      }
    },
  };
}

function sessionOf(page: PageRequest, { successUrl, cancelUrl }: StripeOptions): Stripe.Checkout.SessionCreateParams {
  const { reservationId, saleId, userId, qty, amount, currency, name, expiresAt } = page;
  const metadata = { reservationId, saleId, userId };
  const filled = (url: string) =>
    url.replaceAll('{RESERVATION_ID}', reservationId).replaceAll('{SALE_ID}', encodeURIComponent(saleId));
  return {
    mode: 'payment',
    client_reference_id: reservationId,
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: currency.toLowerCase(),
          unit_amount: toStripe(amount, currency),
          product_data: { name: qty === 1 ? name : `${qty} × ${name}` },
        },
      },
    ],
    metadata,
    payment_intent_data: { metadata },
    expires_at: Math.floor(expiresAt / 1000),
    success_url: filled(successUrl),
    cancel_url: filled(cancelUrl),
  };
}

/** A key that was just replaced, a request with the same key under way, too many at once: not an answer yet. */
const TRY_AGAIN = [401, 403, 408, 409, 425, 429];

/**
 * Asks Stripe, with the next key where one is not known. Nothing is tried again here, keeper and buyer do that; only a
 * connection that is closed under a request makes the library ask once more, under the same key.
 */
function caller({ keys, apiBase, timeoutMs }: StripeOptions): Call {
  let clients: Promise<Stripe[]> | undefined;
  const connect = async () => {
    const Library = await library();
    const config = { maxNetworkRetries: 0, timeout: timeoutMs, telemetry: false, ...hostOf(apiBase) };
    return keys.map((key) => new Library(key, config));
  };
  return async (what, ask) => {
    let refused: Error | undefined;
    for (const stripe of await (clients ??= connect())) {
      try {
        return await ask(stripe);
      } catch (error) {
        refused = inOurWords(error, what);
        if (statusOf(error) !== 401) break;
      }
    }
    throw refused ?? new ProviderUnavailable(`${what}: there is no key`);
  };
}

function hostOf(apiBase: string | undefined): Stripe.StripeConfig {
  if (apiBase === undefined) return {};
  const { hostname, port, protocol } = new URL(apiBase);
  const http = protocol === 'http:';
  return { host: hostname, port: port === '' ? (http ? 80 : 443) : Number(port), protocol: http ? 'http' : 'https' };
}

type StripeFailure = { type?: string; code?: string; statusCode?: number };
const statusOf = (error: unknown) => (error as StripeFailure).statusCode;
const codeOf = (error: Error) => (error.cause as StripeFailure | undefined)?.code;

function inOurWords(error: unknown, what: string): Error {
  if (!(error instanceof Error) || !(error as StripeFailure).type?.startsWith('Stripe')) throw error;
  const status = statusOf(error);
  const message = `Stripe, ${what}: ${status ?? 'no answer'} ${error.message}`.slice(0, 500);
  const again = status === undefined || status >= 500 || TRY_AGAIN.includes(status);
  return new (again ? ProviderUnavailable : ProviderRefused)(message, { cause: error });
}

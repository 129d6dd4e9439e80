/**
 * A stand-in for Stripe's API: the few endpoints that are used, with its real shapes, error bodies and rules (form
 * encoding, idempotency keys that replay an answer and refuse another question, the life of a Checkout Session). Events
 * are signed by Stripe's own library.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Stripe from 'stripe';

export const KEY = 'sk_test_of_the_tests';
export const SECRET = 'whsec_of_the_tests';

export type Session = {
  id: string;
  object: 'checkout.session';
  status: 'open' | 'complete' | 'expired';
  payment_status: 'paid' | 'unpaid';
  payment_intent: string | null;
  amount_total: number;
  currency: string;
  metadata: Record<string, string>;
  expires_at: number;
  url: string | null;
  livemode: boolean;
};
export type Refund = {
  id: string;
  object: 'refund';
  amount: number;
  currency: string;
  payment_intent: string;
  status: string;
  failure_reason?: string;
  metadata: Record<string, string>;
};
type Answer = { status: number; body: unknown };
/** The next calls whose path begins so get this status, or are answered so much later, or hear nothing of what was done. */
export type Fault = { path: string; status?: number; hangMs?: number; lost?: boolean; times?: number };

export type StripeStandIn = Awaited<ReturnType<typeof startStripe>>;

/** Settings of an API that asks the stand-in at this address. */
export const stripeSettings = (url: string) => ({
  PAYMENT_PROVIDER: 'stripe',
  STRIPE_SECRET_KEY: KEY,
  STRIPE_WEBHOOK_SECRET: SECRET,
  STRIPE_API_BASE: url,
  CHECKOUT_SUCCESS_URL: 'https://shop.example/thanks?of={RESERVATION_ID}',
  CHECKOUT_CANCEL_URL: 'https://shop.example/sales/{SALE_ID}',
});

let ids = 0;
const newId = (prefix: string) => `${prefix}_test_${(ids += 1)}_${process.pid}`;

export async function startStripe() {
  const sessions = new Map<string, Session>();
  const refunds: Refund[] = [];
  const captured = new Map<string, { amount: number; currency: string }>();
  const remembered = new Map<string, { question: string; answer: Answer }>();
  const calls: {
    method: string;
    path: string;
    key: string | undefined;
    auth: string | undefined;
    form: URLSearchParams;
  }[] = [];
  const state = { faults: [] as Fault[], keys: [KEY], refundStatus: 'succeeded' };

  const create = (form: URLSearchParams): Answer => {
    const expires = Number(form.get('expires_at'));
    const life = expires - Date.now() / 1000;
    if (life < 30 * 60 || life > 24 * 60 * 60) {
      return refuse(400, 'parameter_invalid', 'expires_at must be between 30 minutes and 24 hours from now');
    }
    for (const needed of [
      'success_url',
      'mode',
      'line_items[0][quantity]',
      'payment_intent_data[metadata][reservationId]',
    ]) {
      if (!form.get(needed)) return refuse(400, 'parameter_missing', `Missing required param: ${needed}.`);
    }
    const id = newId('cs');
    const session: Session = {
      ...{ id, object: 'checkout.session', status: 'open', payment_status: 'unpaid', payment_intent: null },
      amount_total: Number(form.get('line_items[0][price_data][unit_amount]')),
      currency: form.get('line_items[0][price_data][currency]') ?? '',
      metadata: Object.fromEntries(
        ['reservationId', 'saleId', 'userId'].map((n) => [n, form.get(`metadata[${n}]`) ?? '']),
      ),
      expires_at: expires,
      url: `https://checkout.stripe.test/c/pay/${id}`,
      livemode: false,
    };
    sessions.set(id, session);
    return { status: 200, body: session };
  };
  const expire = (session: Session): Answer => {
    if (session.status !== 'open') {
      return refuse(
        400,
        undefined,
        `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of ${session.status}.`,
      );
    }
    Object.assign(session, { status: 'expired', url: null });
    return { status: 200, body: session };
  };
  const refund = (form: URLSearchParams): Answer => {
    const intent = form.get('payment_intent') ?? '';
    const payment = captured.get(intent);
    if (!payment) return refuse(404, 'resource_missing', `No such payment_intent: '${intent}'`);
    const before = refunds.filter((one) => one.payment_intent === intent && one.status !== 'failed');
    const left = payment.amount - before.reduce((sum, one) => sum + one.amount, 0);
    if (left === 0) return refuse(400, 'charge_already_refunded', `Charge of ${intent} has already been refunded.`);
    const amount = Number(form.get('amount') ?? left);
    if (amount > left)
      return refuse(400, undefined, `Refund amount (${amount}) is greater than unrefunded amount on charge (${left})`);
    const metadata = Object.fromEntries(['refundId', 'reason'].map((n) => [n, form.get(`metadata[${n}]`) ?? '']));
    const made: Refund = {
      id: newId('re'),
      object: 'refund',
      amount,
      currency: payment.currency,
      payment_intent: intent,
      status: state.refundStatus,
      metadata,
    };
    refunds.push(made);
    return { status: 200, body: made };
  };

  const answer = (method: string, path: string, form: URLSearchParams): Answer => {
    const [, , , , id = ''] = path.split('/');
    const session = sessions.get(id);
    if (method === 'POST' && path === '/v1/checkout/sessions') return create(form);
    if (method === 'POST' && path === '/v1/refunds') return refund(form);
    if (method === 'GET' && path === '/v1/refunds') {
      const of = refunds.filter((one) => one.payment_intent === form.get('payment_intent'));
      return { status: 200, body: { object: 'list', url: '/v1/refunds', has_more: false, data: of } };
    }
    if (path.startsWith('/v1/checkout/sessions/') && session) {
      if (method === 'POST' && path.endsWith('/expire')) return expire(session);
      if (method === 'GET') return { status: 200, body: session };
    }
    return refuse(404, 'resource_missing', `No such object: ${path}`);
  };

  /** One idempotency key is one question: the same is answered as the first time, another is refused. */
  const once = (key: string | undefined, question: string, work: () => Answer): Answer => {
    if (key === undefined) return work();
    const known = remembered.get(key);
    if (known && known.question !== question) {
      return refuse(
        400,
        undefined,
        'Keys for idempotent requests can only be used with the same parameters.',
        'idempotency_error',
      );
    }
    if (known) return known.answer;
    const made = work();
    remembered.set(key, { question, answer: made });
    return made;
  };

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://stripe');
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const form = new URLSearchParams(body === '' ? url.search : body);
    const key = request.headers['idempotency-key'] as string | undefined;
    const auth = request.headers.authorization?.replace(/^Bearer /, '');
    calls.push({ method: request.method ?? '', path: url.pathname, key, auth, form });
    const fault = state.faults.find(({ path, times = 1 }) => url.pathname.startsWith(path) && times > 0);
    if (fault) fault.times = (fault.times ?? 1) - 1;
    if (fault?.hangMs !== undefined) await sleep(fault.hangMs, undefined, { ref: false });
    let reply: Answer;
    if (!state.keys.includes(auth ?? '')) reply = refuse(401, undefined, 'Invalid API Key provided: sk_test_***');
    else if (fault?.status !== undefined) reply = refuse(fault.status, undefined, 'on purpose', 'api_error');
    else
      reply = once(key, `${request.method ?? ''} ${url.pathname} ${form.toString()}`, () =>
        answer(request.method ?? '', url.pathname, form),
      );
    if (fault?.lost === true) request.socket.destroy();
    else
      response
        .writeHead(reply.status, { 'content-type': 'application/json', 'request-id': newId('req') })
        .end(JSON.stringify(reply.body));
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    ...{ sessions, refunds, captured, calls, state },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The buyer pays on the page. @returns the payment intent's id */
    pay: (session: Session): string => {
      const id = newId('pi');
      captured.set(id, { amount: session.amount_total, currency: session.currency });
      Object.assign(session, { status: 'complete', payment_status: 'paid', payment_intent: id, url: null });
      return id;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function refuse(status: number, code: string | undefined, message: string, type = 'invalid_request_error'): Answer {
  return { status, body: { error: { type, ...(code === undefined ? {} : { code }), message } } };
}

/** An event as Stripe writes it. */
export function stripeEvent(type: string, object: object, but: object = {}) {
  const created = Math.floor(Date.now() / 1000);
  return {
    id: newId('evt'),
    object: 'event',
    api_version: '2026-10-28',
    created,
    livemode: false,
    type,
    data: { object },
    ...but,
  };
}

/** The header that signs these bytes. */
export function stripeSignature(payload: string, { secret = SECRET, timestamp = Math.floor(Date.now() / 1000) } = {}) {
  return Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
}

export const intentOf = (id: string, { amount_total: amount, currency, metadata }: Session) => ({
  ...{ id, object: 'payment_intent', amount, amount_received: amount, currency, metadata },
});
export const chargeOf = (intent: string, { amount_total: amount, currency, metadata }: Session, refunded = amount) => ({
  ...{ id: newId('ch'), object: 'charge', amount, amount_refunded: refunded, refunded: refunded === amount },
  ...{ payment_intent: intent, currency, metadata },
});

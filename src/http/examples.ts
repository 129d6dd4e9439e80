/** One sale, one buyer and what became of them, as the examples of the document; a test holds them to its schemas. */
import type { PaymentEventType } from '../domain/payment.ts';
import type { WebhookEventType } from '../domain/webhook.ts';
import { problemBody, problems, type ProblemCode } from './problem.ts';

const ids = { reservationId: '541460b2-8259-4f70-9018-0676e172f86a', saleId: 'sample', userId: 'u-1' };
const money = { amount: 49_900, currency: 'EUR' };
const settings = {
  ...{ name: 'Sample phone', total: 100, holdSeconds: 600, maxPerReservation: 2, price: money },
  ...{ startsAt: '2026-11-29T20:44:30.801Z', endsAt: '2026-12-29T20:44:30.801Z' },
};
const sale = { saleId: ids.saleId, state: 'open', ...settings };
const hold = {
  ...{ ...ids, qty: 1, ...money },
  ...{ reservedAt: '2026-11-29T20:45:24.120Z', expiresAt: '2026-11-29T20:55:24.120Z' },
};
const endpoint = {
  ...{ endpointId: 'shop', url: 'https://shop.example/flashgate', active: true },
  ...{ events: ['reservation.paid', 'reservation.refunded'], createdAt: '2026-11-29T20:44:02.918Z' },
};
const oldSecretUntil = '2026-11-30T20:44:02.918Z';
const delivery = {
  ...{ eventId: `${ids.reservationId}_paid`, type: 'reservation.paid', status: 'FAILED', attempts: 10 },
  ...{ lastStatus: 500, lastAnswer: 'oops', lastError: 'HTTP 500' },
  ...{ createdAt: '2026-11-29T20:46:02.301Z', updatedAt: '2026-12-03T00:01:17.044Z' },
};
const byStatus = { PENDING_PAYMENT: 0, PAID: 1, EXPIRED: 0, CANCELLED: 0, REJECTED: 0, REFUNDED: 0 };

/** By the schema's name. */
export const examples: Record<string, object> = {
  SaleSettings: settings,
  Reserved: { outcome: 'ok', ...hold },
  Reservation: { ...hold, status: 'PENDING_PAYMENT' },
  AdminReservation: { ...hold, status: 'REFUNDED', refund: 'SUCCEEDED', unitsReturned: true },
  CheckoutPage: {
    ...{ reservationId: ids.reservationId, ...money, expiresAt: hold.expiresAt },
    url: 'https://checkout.stripe.com/c/pay/cs_test_1',
  },
  Sale: { ...sale, unitsLeft: 99, serverTime: '2026-11-29T20:45:24.092Z' },
  AdminSale: { ...sale, settings: 1 },
  SaleFigures: {
    ...{ ...sale, settings: 1, away: [], queue: { waiting: 0, inFlight: 0, deadLetters: 0 } },
    gate: {
      ...{ state: 'open', stock: 99, held: 1, forfeited: 0, total: 100, settings: 1, unqueued: 0 },
      ...{ generation: '1', version: 1 },
    },
    ledger: { total: 100, sold: 1, byStatus },
  },
  Orders: { orders: [{ ...hold, status: 'PAID' }], next: `762.${ids.reservationId}` },
  Unavailable: { code: 'gate_unavailable' },
  Journal: {
    entries: [
      {
        ...{ entryId: 7, at: '2026-11-29T20:45:30.200Z', who: 'token', requestId: '6f1c9a9e', action: 'pause' },
        ...{ saleId: ids.saleId, outcome: 'done' },
        ...{ before: { state: 'open', settings: 1 }, after: { state: 'paused', settings: 2 } },
      },
    ],
    next: '763.7',
  },
  Received: { state: 'applied', outcome: 'paid' },
  WebhookEndpoint: endpoint,
  WebhookEndpointWithSecret: { ...endpoint, oldSecretUntil, secret: `whsec_${'c2FtcGxl'.repeat(4)}` },
  WebhookEndpoints: { endpoints: [endpoint] },
  WebhookDelivery: delivery,
  WebhookDeliveries: { deliveries: [delivery], next: '17' },
  ReservationEvent: reservationEvent(),
};

export function paymentEvent(type: PaymentEventType = 'payment.succeeded'): object {
  const { reservationId } = ids;
  return { type, timestamp: '2026-11-29T20:46:02Z', data: { paymentId: 'pay-1', reservationId, ...money } };
}

export function reservationEvent(type: WebhookEventType = 'reservation.paid'): object {
  const status = type.replace('reservation.', '').toUpperCase();
  const more = {
    CANCELLED: { reason: 'by_buyer' },
    REJECTED: { reason: 'no_room' },
    REFUNDED: { unitsReturned: true },
  };
  const data = { ...hold, status, ...(more as Record<string, object>)[status] };
  return { type, timestamp: '2026-11-29T20:46:02.301Z', data };
}

/** What some problems say beside their name. */
const MORE: Partial<Record<ProblemCode, object>> = {
  invalid_request: { detail: 'body/qty must be integer' },
  malformed_event: { detail: 'data.amount: Invalid input: expected number, received string' },
  sold_out: { mayReturn: true },
  not_started: { startsAt: sale.startsAt },
  qty_over_limit: { maxPerReservation: sale.maxPerReservation },
  too_many_endpoints: { detail: 'there are 20 already' },
  total_too_low: { detail: '3 units of sale sample are sold or held' },
};

/** An example for each code, named by it. */
export function problemExamples(): Record<ProblemCode, { summary: string; value: unknown }> {
  const entries = Object.entries(problems).map(([code, [status, title]]) => {
    const value: unknown = JSON.parse(problemBody(code as ProblemCode, { ...MORE[code as ProblemCode] }));
    return [code, { summary: `${status} ${title}`, value }] as const;
  });
  return Object.fromEntries(entries) as Record<ProblemCode, { summary: string; value: unknown }>;
}

/**
 * A small API in memory that keeps to the contract's words, and tells one chosen lie: the rush must notice. It stands in
 * for the real one only where a lie is wanted, since the real one cannot be asked to tell any.
 */
import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyReply } from 'fastify';

export type Lie =
  | 'none'
  | 'told_without_order'
  | 'order_without_telling'
  | 'two_reservations'
  | 'holder_refused'
  | 'money_kept'
  | 'oversold'
  | 'sold_out_too_early'
  | 'winner_refused'
  | 'paid_but_expired'
  | 'other_amount'
  | 'internal_error'
  | 'never_expires';

type Order = {
  reservationId: string;
  saleId: string;
  userId: string;
  qty: number;
  amount: number;
  currency: string;
  status: string;
  reservedAt: string;
  expiresAt: string;
};

type Settings = { total: number; holdSeconds: number; maxPerReservation: number; price: Record<string, unknown> };

export type FakeApi = { url: string; close(): Promise<void> };

/** @param providerUrl asked late, since the provider needs this API's address first */
export async function startFakeApi(lie: Lie, providerUrl: () => string): Promise<FakeApi> {
  const app = Fastify({ forceCloseConnections: true });
  const orders = new Map<string, Order>();
  const holders = new Map<string, Order>();
  let settings: Settings = { total: 0, holdSeconds: 1, maxPerReservation: 1, price: {} };
  let hasLied = false;

  const live = () => [...orders.values()].filter(({ status }) => status === 'PENDING_PAYMENT' || status === 'PAID');
  const taken = () => live().reduce((all, { qty }) => all + qty, 0);
  const problem = (reply: FastifyReply, status: number, code: string) => reply.code(status).send({ status, code });
  const lieOnce = (kind: Lie) => {
    if (lie !== kind || hasLied) return false;
    hasLied = true;
    return true;
  };

  function newOrder(saleId: string, userId: string, qty: number): Order {
    const now = Date.now();
    const order: Order = {
      reservationId: randomUUID(),
      saleId,
      userId,
      qty,
      amount: 1999 * qty,
      currency: 'EUR',
      status: lieOnce('winner_refused') ? 'REJECTED' : 'PENDING_PAYMENT',
      reservedAt: new Date(now).toISOString(),
      expiresAt: new Date(now + settings.holdSeconds * 1000).toISOString(),
    };
    if (!lieOnce('told_without_order')) orders.set(order.reservationId, order);
    return order;
  }

  function expire(): void {
    for (const order of live()) {
      if (lie === 'never_expires' || order.status !== 'PENDING_PAYMENT') continue;
      if (Date.parse(order.expiresAt) < Date.now()) order.status = 'EXPIRED';
    }
  }
  const sweeper = setInterval(expire, 50);

  app.put('/admin/sales/:id', (request) => {
    settings = request.body as Settings;
    return {};
  });
  app.get<{ Params: { id: string } }>('/sales/:id', ({ params }) => {
    return { ...settings, saleId: params.id, state: 'open' };
  });
  app.post<{ Params: { id: string }; Body: { userId: string; qty: number } }>(
    '/sales/:id/reserve',
    ({ params, body: { userId, qty } }, reply) => {
      const answer = (status: 200 | 202, order: Order) =>
        reply.code(status).send({ outcome: status === 202 ? 'ok' : 'dup', ...order });
      const held = holders.get(userId);
      if (held && (held.status === 'PENDING_PAYMENT' || held.status === 'PAID')) {
        if (lie === 'holder_refused') return problem(reply, 409, 'sold_out');
        return lieOnce('two_reservations') ? answer(202, newOrder(params.id, userId, qty)) : answer(200, held);
      }
      if (orders.size >= 3 && lieOnce('internal_error')) return problem(reply, 500, 'internal_error');
      const room = settings.total + (lie === 'oversold' ? 2 : lie === 'sold_out_too_early' ? -2 : 0);
      if (taken() + qty > room) return problem(reply, 409, 'sold_out');
      const order = newOrder(params.id, userId, qty);
      holders.set(userId, order);
      if (lieOnce('order_without_telling')) return problem(reply, 409, 'sold_out');
      return answer(202, lieOnce('other_amount') ? { ...order, amount: order.amount - 1 } : order);
    },
  );
  app.get<{ Params: { rid: string } }>('/sales/:id/reservations/:rid', ({ params }, reply) => {
    return orders.get(params.rid) ?? problem(reply, 404, 'reservation_not_found');
  });
  app.get<{ Querystring: { status: string; after?: string } }>('/admin/sales/:id/orders', ({ query }) => {
    const all = [...orders.values()].filter(({ status }) => status === query.status);
    const from = Number(query.after ?? 0);
    const next = from + 3 < all.length ? String(from + 3) : null; // small pages, so that the cursor is used
    return { orders: all.slice(from, from + 3), next };
  });
  app.get('/admin/sales/:id', () => {
    const { total } = settings;
    const held = taken();
    const gate = { stock: total - held, held, forfeited: 0, total };
    return { gate, ledger: { total, sold: held }, queue: {} };
  });
  app.post<{ Body: { type: string; data: { reservationId: string; paymentId: string; amount: number } } }>(
    '/webhooks/payments',
    async ({ body: { data } }) => {
      const order = orders.get(data.reservationId);
      if (order?.status === 'PENDING_PAYMENT' && !lieOnce('paid_but_expired')) {
        order.status = 'PAID';
      } else if (lie !== 'money_kept') {
        await fetch(`${providerUrl()}/refunds`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': `refund-${data.paymentId}` },
          body: JSON.stringify({
            refundId: `refund-${data.paymentId}`,
            paymentId: data.paymentId,
            amount: data.amount,
            currency: 'EUR',
            reason: 'expired',
          }),
        });
      }
      return {};
    },
  );
  app.addHook('onClose', () => clearInterval(sweeper));
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url, close: () => app.close() };
}

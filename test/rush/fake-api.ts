/**
 * A small API in memory that keeps to the contract's words, and tells one chosen lie: the rush must notice. It stands in
 * for the real one only where a lie is wanted, since the real one cannot be asked to tell any.
 */
import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';

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
  const sale = new FakeSale(lie);
  buyerRoutes(app, sale);
  adminRoutes(app, sale);
  webhookRoute(app, sale, providerUrl);
  const sweeper = setInterval(() => sale.expire(), 50);
  app.addHook('onClose', () => clearInterval(sweeper));
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url, close: () => app.close() };
}

const isLive = ({ status }: Order) => status === 'PENDING_PAYMENT' || status === 'PAID';

/** Gate and ledger in one, and the lie that it tells once. */
class FakeSale {
  settings: Settings = { total: 0, holdSeconds: 1, maxPerReservation: 1, price: {} };
  orders = new Map<string, Order>();
  lie: Lie;
  #holders = new Map<string, Order>();
  #hasLied = false;

  constructor(lie: Lie) {
    this.lie = lie;
  }

  /** True the first time that this is the lie to be told. */
  lieOnce(kind: Lie): boolean {
    if (this.lie !== kind || this.#hasLied) return false;
    this.#hasLied = true;
    return true;
  }

  /** What the buyer holds, if anything. */
  held(userId: string): Order | undefined {
    const held = this.#holders.get(userId);
    return held && isLive(held) ? held : undefined;
  }

  taken(): number {
    return [...this.orders.values()].filter(isLive).reduce((all, { qty }) => all + qty, 0);
  }

  hasRoomFor(qty: number): boolean {
    const extra = this.lie === 'oversold' ? 2 : this.lie === 'sold_out_too_early' ? -2 : 0;
    return this.taken() + qty <= this.settings.total + extra;
  }

  take(saleId: string, userId: string, qty: number): Order {
    const now = Date.now();
    const order: Order = {
      reservationId: randomUUID(),
      saleId,
      userId,
      qty,
      amount: 1999 * qty,
      currency: 'EUR',
      status: this.lieOnce('winner_refused') ? 'REJECTED' : 'PENDING_PAYMENT',
      reservedAt: new Date(now).toISOString(),
      expiresAt: new Date(now + this.settings.holdSeconds * 1000).toISOString(),
    };
    if (!this.lieOnce('told_without_order')) this.orders.set(order.reservationId, order);
    this.#holders.set(userId, order);
    return order;
  }

  expire(): void {
    if (this.lie === 'never_expires') return;
    for (const order of this.orders.values()) {
      if (order.status === 'PENDING_PAYMENT' && Date.parse(order.expiresAt) < Date.now()) order.status = 'EXPIRED';
    }
  }
}

const problem = (reply: FastifyReply, status: number, code: string) => reply.code(status).send({ status, code });

function buyerRoutes(app: FastifyInstance, sale: FakeSale): void {
  app.get<{ Params: { id: string } }>('/sales/:id', ({ params }) => {
    return { ...sale.settings, saleId: params.id, state: 'open' };
  });
  app.post<{ Params: { id: string }; Body: { userId: string; qty: number } }>(
    '/sales/:id/reserve',
    ({ params, body: { userId, qty } }, reply) => {
      const answer = (status: 200 | 202, order: Order) =>
        reply.code(status).send({ outcome: status === 202 ? 'ok' : 'dup', ...order });
      const held = sale.held(userId);
      if (held) {
        if (sale.lie === 'holder_refused') return problem(reply, 409, 'sold_out');
        return sale.lieOnce('two_reservations') ? answer(202, sale.take(params.id, userId, qty)) : answer(200, held);
      }
      if (sale.orders.size >= 3 && sale.lieOnce('internal_error')) return problem(reply, 500, 'internal_error');
      if (!sale.hasRoomFor(qty)) return problem(reply, 409, 'sold_out');
      const order = sale.take(params.id, userId, qty);
      if (sale.lieOnce('order_without_telling')) return problem(reply, 409, 'sold_out');
      return answer(202, sale.lieOnce('other_amount') ? { ...order, amount: order.amount - 1 } : order);
    },
  );
  app.get<{ Params: { rid: string } }>('/sales/:id/reservations/:rid', ({ params }, reply) => {
    return sale.orders.get(params.rid) ?? problem(reply, 404, 'reservation_not_found');
  });
}

function adminRoutes(app: FastifyInstance, sale: FakeSale): void {
  app.put('/admin/sales/:id', (request) => {
    sale.settings = request.body as Settings;
    return {};
  });
  app.get<{ Querystring: { status: string; after?: string } }>('/admin/sales/:id/orders', ({ query }) => {
    const all = [...sale.orders.values()].filter(({ status }) => status === query.status);
    const from = Number(query.after ?? 0);
    const next = from + 3 < all.length ? String(from + 3) : null; // small pages, so that the cursor is used
    return { orders: all.slice(from, from + 3), next };
  });
  app.get('/admin/sales/:id', () => {
    const { total } = sale.settings;
    const held = sale.taken();
    return { gate: { stock: total - held, held, forfeited: 0, total }, ledger: { total, sold: held } };
  });
}

function webhookRoute(app: FastifyInstance, sale: FakeSale, providerUrl: () => string): void {
  type Paid = { data: { reservationId: string; paymentId: string; amount: number; currency: string } };
  app.post<{ Body: Paid }>('/webhooks/payments', async ({ body: { data } }) => {
    const { reservationId, paymentId, amount, currency } = data;
    const order = sale.orders.get(reservationId);
    if (order?.status === 'PENDING_PAYMENT' && !sale.lieOnce('paid_but_expired')) {
      order.status = 'PAID';
    } else if (sale.lie !== 'money_kept') {
      const refundId = `refund-${paymentId}`;
      await fetch(`${providerUrl()}/refunds`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': refundId },
        body: JSON.stringify({ refundId, paymentId, amount, currency, reason: 'expired' }),
      });
    }
    return {};
  });
}

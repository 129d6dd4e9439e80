/**
 * Sound stores, written straight into Postgres and Redis: sales in each state, orders in each status, money that was
 * applied, parked and given back. What the audit's mutations start from.
 */
import type { Redis } from 'ioredis';
import type pg from 'pg';

export type Order = {
  id: string;
  sale: string;
  user: string;
  qty: number;
  status: 'PENDING_PAYMENT' | 'PAID' | 'EXPIRED' | 'CANCELLED' | 'REJECTED' | 'REFUNDED';
  reason?: string;
  /** For a CANCELLED one: written from the hold, before there was an order to take anything. */
  untaken?: boolean;
  duplicateOf?: string;
  /** For a REFUNDED one. */
  unitsReturned?: boolean;
};
type Refund = { reason: string; status: string; due?: string };
type Payment = { id: string; reservation: string; amount: number; status: string; refund?: Refund };

/** A reservation id that can be told apart in a report. */
export const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

export const PRICE = 500;
export const HOLD_MS = 3_600_000;
/** When everybody reserved, epoch milliseconds. */
export const reservedAt = Date.now() - 20_000;

/** `live` is the sale in which things are broken; the others show that the rest is looked at, and stays sound. */
export const order = {
  pending: { id: id(1), sale: 'live', user: 'ann', qty: 2, status: 'PENDING_PAYMENT' },
  paid: { id: id(2), sale: 'live', user: 'bob', qty: 1, status: 'PAID' },
  paidToo: { id: id(3), sale: 'live', user: 'cleo', qty: 1, status: 'PAID' },
  expired: { id: id(4), sale: 'live', user: 'dan', qty: 1, status: 'EXPIRED' },
  cancelled: { id: id(5), sale: 'live', user: 'eve', qty: 2, status: 'CANCELLED', reason: 'payment_canceled' },
  early: { id: id(6), sale: 'live', user: 'fay', qty: 1, status: 'CANCELLED', reason: 'by_buyer', untaken: true },
  refused: { id: id(7), sale: 'live', user: 'gus', qty: 1, status: 'REJECTED', reason: 'no_room' },
  duplicate: {
    id: id(8),
    sale: 'live',
    user: 'bob',
    qty: 1,
    status: 'REJECTED',
    reason: 'duplicate_buyer',
    duplicateOf: id(2),
  },
  returned: { id: id(11), sale: 'live', user: 'hal', qty: 1, status: 'REFUNDED', unitsReturned: true },
  withdrawn: { id: id(12), sale: 'live', user: 'ida', qty: 2, status: 'REFUNDED', unitsReturned: false },
  old: { id: id(9), sale: 'closed', user: 'ann', qty: 2, status: 'PAID' },
} satisfies Record<string, Order>;

/** A hold on its way to the ledger. */
export const young: Pick<Order, 'id' | 'user' | 'qty'> = { id: id(10), user: 'yan', qty: 1 };

const payments: Payment[] = [
  { id: 'pay-paid', reservation: id(2), amount: PRICE, status: 'APPLIED' },
  { id: 'pay-paid-too', reservation: id(3), amount: PRICE, status: 'APPLIED' },
  { id: 'pay-old', reservation: id(9), amount: 2 * PRICE, status: 'APPLIED' },
  { id: 'pay-young', reservation: young.id, amount: PRICE, status: 'PARKED' },
  owed('pay-twice', 2, PRICE, 'already_paid', 'SUCCEEDED'),
  owed('pay-late', 4, PRICE, 'expired', 'SUCCEEDED'),
  owed('pay-cancelled', 5, 2 * PRICE, 'cancelled', 'PENDING'),
  owed('pay-refused', 7, PRICE, 'rejected', 'SUBMITTED'),
  owed('pay-short', 1, 2 * PRICE - 1, 'amount_mismatch', 'FAILED'),
  owed('pay-returned', 11, PRICE, 'by_shop', 'SUCCEEDED'),
  owed('pay-withdrawn', 12, 2 * PRICE, 'at_provider', 'SUCCEEDED'),
  owed('pay-before', 11, PRICE, 'already_paid', 'SUCCEEDED'),
  owed('pay-after', 12, 2 * PRICE, 'refunded', 'PENDING'),
  owed('pay-unknown', 99, 7, 'unknown_reservation', 'SUCCEEDED'),
];

function owed(name: string, n: number, amount: number, reason: string, status: string): Payment {
  return { id: name, reservation: id(n), amount, status: 'OWED', refund: { reason, status } };
}

/** Units of the sale `live` at the gate: 2 + 1 + 1 of orders, 1 on its way; one was forfeited. */
export const LIVE_GATE = { total: 20, held: 5, forfeited: 1, stock: 14 };

export const key = (name: string, sale = 'live') => `{sale:${sale}}:${name}`;

/** The hold as the gate keeps it. */
export function hold(
  of: Pick<Order, 'id' | 'qty'>,
  but: { at?: number; expires?: number; amount?: number } = {},
): string {
  const at = but.at ?? reservedAt;
  return [of.id, of.qty, at, but.expires ?? at + HOLD_MS, but.amount ?? of.qty * PRICE, 'EUR'].join('|');
}

/** Fills an empty ledger. */
export async function writeLedger(db: pg.Client): Promise<void> {
  await db.query(`
    insert into sales (sale_id, name, state, starts_at, ends_at, hold_seconds, max_per_reservation, price_amount, currency, opened_at)
    select sale_id, sale_id, state, '2020-01-01', '2099-01-01', 3600, 4, ${PRICE}, 'EUR', opened_at
      from (values ('live', 'open', now()), ('quiet', 'paused', now()), ('closed', 'closed', now()),
                   ('unopened', 'open', null)) as s (sale_id, state, opened_at);
    insert into sale_stock (sale_id, total, sold) values ('live', 20, 4), ('quiet', 7, 0), ('closed', 5, 2), ('unopened', 3, 0);
    update shard_fences set token = 5`);
  for (const one of Object.values(order)) await writeOrder(db, one);
  for (const one of payments) await writePayment(db, one);
  await db.query(
    `
    insert into payment_events (event_id, type, payment_id, reservation_id, amount, currency, state, outcome)
    values ('event-parked', 'payment.canceled', 'pay-nobody', $1, 1, 'EUR', 'parked', 'no_order_yet')`,
    [young.id],
  );
  await writeWebhooks(db);
  await writePages(db);
}

/**
 * Pages to pay on: of a hold that is unpaid, of orders that are paid or have ended, one that the provider never made, one
 * that has just become due, one that expired at the provider by itself, one whose hold is in the queue, and one whose hold
 * was lost there.
 */
async function writePages(db: pg.Client): Promise<void> {
  const page = (of: string, made: boolean, closed: boolean, more = '') => `
    insert into checkout_pages (reservation_id, sale_id, hold_expires_at, expires_at, session_id, url, closed_at, next_attempt_at)
    select '${of}', 'live', hold, hold, ${made ? `'page-${of}', 'https://pay.example/'` : 'null, null'},
           ${closed ? 'now()' : 'null'}, now() - interval '1 hour'
      from (values (to_timestamp(${(reservedAt + HOLD_MS) / 1000}))) as h (hold);
    ${more === '' ? '' : `update checkout_pages set ${more} where reservation_id = '${of}';`}`;
  const statements = [
    ...[page(order.pending.id, true, false), page(order.paid.id, true, true), page(order.paidToo.id, true, false)],
    ...[page(order.duplicate.id, false, false), page(order.cancelled.id, true, true)],
    ...[page(order.returned.id, true, false, 'expires_at = now()'), page(young.id, true, false)],
    page(id(97), true, true, `hold_expires_at = now() - interval '1 minute'`),
  ];
  await db.query(statements.join('\n'));
}

/** Endpoints that want to hear of refused orders: one that heard, one that is tried, one from which nothing is expected. */
async function writeWebhooks(db: pg.Client): Promise<void> {
  await db.query(`
    insert into webhook_endpoints (endpoint_id, url, events, active, complete_since)
    select id, 'https://shop.example/', array['reservation.rejected'], active, now() - interval '1 hour'
      from (values ('shop', true), ('down', true), ('off', false)) as e (id, active);
    insert into webhook_deliveries (endpoint_key, event_id, type, payload, status, attempts)
    select endpoint_key, reservation_id || '_rejected', 'reservation.rejected',
           json_build_object('data', json_build_object('reservationId', reservation_id, 'status', status)),
           case endpoint_id when 'shop' then 'DELIVERED' else 'PENDING' end, 1
      from webhook_endpoints, sale_orders where active and status = 'REJECTED'`);
}

/** An order with the journal entries that belong to it. Stock is left alone. */
export async function writeOrder(db: pg.Client, one: Order): Promise<void> {
  await db.query(
    `insert into sale_orders (reservation_id, sale_id, user_id, qty, amount, currency, status, reason, live_reservation_id,
                              reserved_at, expires_at, units_returned, gate_released_at)
     values ($1, $2, $3, $4::int, $4::int * ${PRICE}, 'EUR', $5, $6, $7, to_timestamp($8 / 1000.0), to_timestamp($9 / 1000.0), $10,
             case when $5 in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED') then now() end)`,
    [
      ...[one.id, one.sale, one.user, one.qty, one.status, one.reason ?? null, one.duplicateOf ?? null],
      ...[reservedAt, reservedAt + HOLD_MS, one.unitsReturned ?? null],
    ],
  );
  const entry = (kind: string, delta: number) =>
    db.query(`insert into ledger_entries (sale_id, reservation_id, kind, delta) values ($1, $2, $3, $4)`, [
      ...[one.sale, one.id, kind, delta],
    ]);
  if (one.status === 'REJECTED' || one.untaken) return;
  await entry('order', one.qty);
  if (one.status === 'EXPIRED') await entry('expiry', -one.qty);
  if (one.status === 'CANCELLED') await entry('cancel', -one.qty);
  if (one.status === 'REFUNDED') await entry('refund', -one.qty);
}

async function writePayment(
  db: pg.Client,
  { id: paymentId, reservation, amount, status, refund }: Payment,
): Promise<void> {
  await db.query(
    `insert into payments (payment_id, reservation_id, amount, currency, status) values ($1, $2, $3, 'EUR', $4)`,
    [...[paymentId, reservation, amount, status]],
  );
  await db.query(
    `insert into payment_events (event_id, type, payment_id, reservation_id, amount, currency, state, outcome)
     values ('event-of-' || $1, 'payment.succeeded', $1, $2, $3, 'EUR', 'applied', 'as it was')`,
    [paymentId, reservation, amount],
  );
  if (!refund) return;
  await db.query(`insert into refunds (payment_id, amount, currency, reason, status) values ($1, $2, 'EUR', $3, $4)`, [
    ...[paymentId, amount, refund.reason, refund.status],
  ]);
}

/** Fills an empty gate. */
export async function writeGate(redis: Redis): Promise<void> {
  const settings = {
    ...{ settings: 1, startsAt: Date.parse('2020-01-01'), endsAt: Date.parse('2099-01-01'), maxPerReservation: 4 },
    ...{ holdSeconds: 3600, amount: PRICE, currency: 'EUR', generation: 5, version: 1, token: 5 },
  };
  const { stock, ...figures } = LIVE_GATE;
  const multi = redis.multi();
  multi.set(key('stock'), stock).hset(key('sale'), { state: 'open', ...figures, ...settings });
  for (const one of [order.pending, order.paid, order.paidToo, young]) {
    multi.hset(key('holds'), one.user, hold(one)).sadd(key('buyers'), one.user);
  }
  multi.zadd(key('unqueued'), reservedAt, young.user);
  multi.set(key('stock', 'quiet'), 7);
  multi.hset(key('sale', 'quiet'), { state: 'paused', total: 7, held: 0, forfeited: 0, ...settings });
  await multi.exec();
}

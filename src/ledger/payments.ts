/**
 * Payments against expiry. Each event is applied once, in any order, any number of times, and is remembered in the
 * transaction that applies it; each payment is known by its own id. Money that paid nothing is owed back in the same
 * transaction.
 */
import type { KnownEvent, Payment, RefundReason } from '../domain/payment.ts';
import type { OrderStatus } from '../domain/reservation.ts';
import { query, transaction, type Pool, type Queryable } from './db.ts';
import { end, lockSales, type Order } from './orders.ts';
import { payUnlessRefunded, reportRefund } from './refunding.ts';

/** What an event did. `ended` are orders whose units are now to be given back at the gate. */
export type Applied = { state: 'applied' | 'parked' | 'ignored'; outcome: string; ended: Order[] };

const REPEATED: Applied = { state: 'ignored', outcome: 'repeated', ended: [] };

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Applies an event, or finds that it was applied before.
 * @throws {LedgerUnavailable} then nothing is remembered and the provider must send it again
 */
export async function applyEvent(pool: Pool, given: KnownEvent): Promise<Applied> {
  const event = { ...given, reservationId: storable(given.reservationId) };
  const applied = await transaction(pool, async (client) => {
    // First, so that the same event at the same moment waits here for its twin, and then finds it.
    if (!(await remember(client, event))) return REPEATED;
    const result = await apply(client, event);
    await conclude(client, event.eventId, result);
    return result;
  });
  if (applied.state !== 'parked') return applied;
  // The order may have been recorded while we looked: the worker looks after its commit, and so do we after ours.
  const found = await claimParked(pool, [event.reservationId]);
  const [first = applied] = found;
  return { ...first, ended: found.flatMap(({ ended }) => ended) };
}

/**
 * Our ids are lower-case UUIDs; a provider may have changed the case. Any other text came with money all the same, and
 * Postgres keeps every character but NUL.
 */
const storable = (text: string) =>
  UUID.test(text.toLowerCase()) ? text.toLowerCase() : text.replaceAll('\0', '\uFFFD');

async function apply(client: Queryable, event: KnownEvent): Promise<Applied> {
  switch (event.type) {
    case 'payment.succeeded':
      return capture(client, event);
    case 'payment.canceled':
      return cancelUnpaid(client, event);
    case 'payment.failed':
      return { state: 'applied', outcome: 'declined', ended: [] };
    case 'refund.succeeded':
    case 'refund.failed':
      return reported(client, event);
  }
}

async function reported(client: Queryable, event: KnownEvent): Promise<Applied> {
  const done = await reportRefund(client, event);
  return done ? { state: 'applied', ...done } : { state: 'ignored', outcome: 'no_refund_under_way', ended: [] };
}

const REMEMBER = {
  name: 'remember-event',
  text: `insert into payment_events (event_id, type, payment_id, reservation_id, amount, currency, state, outcome)
         values ($1, $2, $3, $4, $5, $6, 'ignored', 'under way') on conflict (event_id) do nothing returning event_id`,
};

/** @returns whether this event is new */
async function remember(client: Queryable, event: KnownEvent): Promise<boolean> {
  const { eventId, type, paymentId, reservationId, amount, currency } = event;
  const rows = await query(client, REMEMBER, [eventId, type, paymentId, reservationId, amount, currency]);
  return rows.length > 0;
}

// A capture without an order is kept as a payment that is PARKED, so its event has done its work.
const CONCLUDE = {
  name: 'conclude-event',
  text: `update payment_events set outcome = $3,
           state = case when $2::text = 'parked' and type = 'payment.succeeded' then 'applied' else $2::text end
         where event_id = $1`,
};

async function conclude(client: Queryable, eventId: string, { state, outcome }: Applied): Promise<void> {
  await query(client, CONCLUDE, [eventId, state, outcome]);
}

const INSERT_PAYMENT = {
  name: 'insert-payment',
  text: `insert into payments (payment_id, reservation_id, amount, currency, status)
         values ($1, $2, $3, $4, 'PARKED') on conflict (payment_id) do nothing returning payment_id`,
};

async function capture(client: Queryable, payment: Payment): Promise<Applied> {
  const { paymentId, reservationId, amount, currency } = payment;
  const inserted = await query(client, INSERT_PAYMENT, [paymentId, reservationId, amount, currency]);
  // Known by its own id: a second event of it, of whatever kind, changes nothing.
  if (inserted.length === 0) return { state: 'ignored', outcome: 'known_payment', ended: [] };
  if (!UUID.test(reservationId)) return owe(client, payment, 'unknown_reservation');
  return settle(client, payment);
}

const PAY = {
  name: 'pay-order',
  text: `update sale_orders set status = 'PAID'
         where reservation_id = $1 and status = 'PENDING_PAYMENT' and amount = $2 and currency = $3
         returning reservation_id`,
};
const LOOK = {
  name: 'look-at-order',
  text: `select status, sale_id, amount = $2 and currency = $3 as fits from sale_orders where reservation_id = $1`,
};

/** Finds what a payment that is PARKED pays: its order, nothing (then it is owed back), or nothing yet. */
async function settle(client: Queryable, payment: Payment): Promise<Applied> {
  const values = [payment.reservationId, payment.amount, payment.currency];
  for (;;) {
    const { paid, refunded } = await payUnlessRefunded(client, payment, async () => {
      const rows = await query(client, PAY, values);
      if (rows.length > 0) await move(client, payment, 'APPLIED', 'paid');
      return rows.length > 0;
    });
    if (refunded) return { state: 'applied', outcome: 'refunded_at_provider', ended: [refunded] };
    if (paid) return { state: 'applied', outcome: 'paid', ended: [] };
    const [order] = await query<{ status: OrderStatus; fits: boolean }>(client, LOOK, values);
    if (!order) return { state: 'parked', outcome: 'no_order_yet', ended: [] };
    if (order.status !== 'PENDING_PAYMENT') return owe(client, payment, OWED_WHEN[order.status]);
    if (!order.fits) return owe(client, payment, 'amount_mismatch');
    // It was recorded between the two statements: an unpaid order that fits is there now.
  }
}

const OWED_WHEN: Record<Exclude<OrderStatus, 'PENDING_PAYMENT'>, RefundReason> = {
  PAID: 'already_paid',
  EXPIRED: 'expired',
  CANCELLED: 'cancelled',
  REJECTED: 'rejected',
  REFUNDED: 'refunded',
};

const MOVE = {
  name: 'move-payment',
  text: `update payments set status = $2 where payment_id = $1 and status = 'PARKED'`,
};

async function move(client: Queryable, payment: Payment, to: 'APPLIED' | 'OWED', outcome: string): Promise<Applied> {
  await query(client, MOVE, [payment.paymentId, to]);
  return { state: 'applied', outcome, ended: [] };
}

// Nothing was captured, nothing is to be given back: the row says that this was seen.
const OWE = {
  name: 'owe-refund',
  text: `insert into refunds (payment_id, amount, currency, reason, status)
         values ($1, $2, $3, $4, case when $2::bigint = 0 then 'SUCCEEDED' else 'PENDING' end)`,
};

async function owe(client: Queryable, payment: Payment, reason: RefundReason): Promise<Applied> {
  await query(client, OWE, [payment.paymentId, payment.amount, payment.currency, reason]);
  return move(client, payment, 'OWED', `refund_owed: ${reason}`);
}

const CAPTURED = { name: 'captured', text: `select 1 from payments where payment_id = $1` };

/** The provider gave the payment up: the hold is freed, unless money came all the same. */
async function cancelUnpaid(client: Queryable, event: KnownEvent): Promise<Applied> {
  if ((await query(client, CAPTURED, [event.paymentId])).length > 0) {
    return { state: 'ignored', outcome: 'captured_before', ended: [] };
  }
  if (!UUID.test(event.reservationId)) return { state: 'ignored', outcome: 'unknown_reservation', ended: [] };
  const values = [event.reservationId, event.amount, event.currency];
  const [order] = await query<{ status: OrderStatus; sale_id: string }>(client, LOOK, values);
  if (!order) return { state: 'parked', outcome: 'no_order_yet', ended: [] };
  await lockSales(client, [order.sale_id]);
  const ended = await end(client, [event.reservationId], { status: 'CANCELLED', reason: 'payment_canceled' });
  if (ended.length > 0) return { state: 'applied', outcome: 'cancelled', ended };
  return { state: 'ignored', outcome: 'order_has_ended', ended: [] };
}

const PARKED_OF = {
  name: 'parked-of',
  text: `select reservation_id from payments where reservation_id = any($1::text[]) and status = 'PARKED'
         union
         select reservation_id from payment_events where reservation_id = any($1::text[]) and state = 'parked'`,
};

/**
 * Applies what came for these reservations before their orders did.
 * @returns what was found and applied
 */
export async function claimParked(pool: Pool, reservationIds: string[]): Promise<Applied[]> {
  const applied: Applied[] = [];
  if (reservationIds.length === 0) return applied;
  for (const { reservation_id } of await query<{ reservation_id: string }>(pool, PARKED_OF, [reservationIds])) {
    applied.push(...(await transaction(pool, (client) => claimOne(client, reservation_id))));
  }
  return applied;
}

const CLAIM_PAYMENTS = {
  name: 'claim-payments',
  text: `select payment_id as "paymentId", reservation_id as "reservationId", amount, currency from payments
         where reservation_id = $1 and status = 'PARKED' order by received_at, payment_id for update`,
};
const CLAIM_EVENTS = {
  name: 'claim-events',
  text: `select event_id as "eventId", type, payment_id as "paymentId", reservation_id as "reservationId", amount, currency
         from payment_events where reservation_id = $1 and state = 'parked' order by received_at, event_id for update`,
};
const SALE_OF = { name: 'sale-of', text: `select sale_id from sale_orders where reservation_id = $1` };

/** Money first: a cancellation that was parked beside a captured payment comes too late. */
async function claimOne(client: Queryable, reservationId: string): Promise<Applied[]> {
  const [order] = await query<{ sale_id: string }>(client, SALE_OF, [reservationId]);
  if (!order) return []; // whoever records it looks after us
  await lockSales(client, [order.sale_id]); // before anything else, as everywhere
  const all: Applied[] = [];
  for (const payment of await query<Payment>(client, CLAIM_PAYMENTS, [reservationId])) {
    all.push(await settle(client, payment));
  }
  for (const event of await query<KnownEvent>(client, CLAIM_EVENTS, [reservationId])) {
    const result = await cancelUnpaid(client, event);
    await conclude(client, event.eventId, result);
    all.push(result);
  }
  return all;
}

const UNCLAIMED = {
  name: 'unclaimed',
  text: `
    select reservation_id as "reservationId", parked_at < now() - $1 * interval '1 millisecond' as "graceIsOver"
    from (select reservation_id, received_at as parked_at from payments where status = 'PARKED'
          union all
          select reservation_id, received_at from payment_events where state = 'parked') as parked
    where parked_at < now() - $1 * interval '1 millisecond'
       or exists (select 1 from sale_orders o where o.reservation_id = parked.reservation_id::uuid)
    order by parked_at limit $2`,
};
const GIVE_UP_EVENTS = {
  name: 'give-up-events',
  text: `update payment_events set state = 'ignored', outcome = 'nobody_claimed_it'
         where reservation_id = $1 and state = 'parked'`,
};

/**
 * One pass over what is parked: applies what has its order by now, and gives back money that nobody claimed in its grace.
 * @returns what was done
 */
export async function settleParked(pool: Pool, graceMs: number, limit: number): Promise<Applied[]> {
  const done: Applied[] = [];
  const rows = await query<{ reservationId: string; graceIsOver: boolean }>(pool, UNCLAIMED, [graceMs, limit]);
  for (const { reservationId, graceIsOver } of rows) {
    const claimed = await claimParked(pool, [reservationId]);
    done.push(...claimed);
    if (claimed.length === 0 && graceIsOver) {
      done.push(...(await transaction(pool, (client) => giveUp(client, reservationId))));
    }
  }
  return done;
}

async function giveUp(client: Queryable, reservationId: string): Promise<Applied[]> {
  const owed: Applied[] = [];
  for (const payment of await query<Payment>(client, CLAIM_PAYMENTS, [reservationId])) {
    // An order that was recorded in this moment is paid by it after all.
    const found = await settle(client, payment);
    owed.push(found.state === 'parked' ? await owe(client, payment, 'unknown_reservation') : found);
  }
  await query(client, GIVE_UP_EVENTS, [reservationId]);
  return owed;
}

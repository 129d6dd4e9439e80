/**
 * The money of a PAID order given back: by the shop, or at the provider without us. One transaction; locks as
 * everywhere: the sale, then the order.
 */
import type { KnownEvent, ShopReason } from '../domain/payment.ts';
import { columns, REFUND_OF_O, toOrder, type Order, type OrderRow, type Wanted } from './orders.ts';
import { query, transaction, type Pool, type Queryable } from './db.ts';
import { COMMAND, writeJournal } from './journal.ts';
import { getSaleLocked } from './sales.ts';

// A sale that is closed has no gate that could hold anything of the order. Units that leave a sale take the total with
// them, under a new version of the settings, which the gate applies before it releases the hold.
const REFUND = {
  name: 'refund-order',
  text: `
    with refunded as (
      update sale_orders set status = 'REFUNDED', units_returned = $2,
        gate_released_at = case when (select state from sales where sale_id = sale_orders.sale_id) = 'closed' then now() end
      where reservation_id = $1 and status = 'PAID' returning ${columns('sale_orders')}
    ), journal as (
      insert into ledger_entries (sale_id, reservation_id, kind, delta)
      select sale_id, reservation_id, 'refund', -qty from refunded
    ), stock as (
      update sale_stock set sold = sold - qty, total = total - case when $2 then 0 else qty end
      from refunded where sale_stock.sale_id = refunded.sale_id
    ), sale as (
      update sales set settings = settings + 1 from refunded where sales.sale_id = refunded.sale_id and not $2
    ), payment as (
      update payments set status = 'OWED' from refunded
      where payments.reservation_id = refunded.reservation_id::text and payments.status = 'APPLIED'
      returning payment_id, payments.amount, payments.currency
    ), owed as (
      insert into refunds (payment_id, amount, currency, reason, status)
      select payment_id, amount, currency, $3,
        case when amount = 0 or $3 = 'at_provider' then 'SUCCEEDED' else 'PENDING' end
      from payment
      returning status
    )
    select ${columns('refunded')}, (select status from owed) as refund from refunded`,
};
const FIND = {
  name: 'find-order',
  text: `select ${columns('o')}, ${REFUND_OF_O} as refund from sale_orders o where reservation_id = $1 and sale_id = $2`,
};

/** Refunds an order of a sale that is locked, if it is PAID. @returns it, or undefined when it is not */
async function refundPaid(
  client: Queryable,
  reservationId: string,
  unitsReturned: boolean,
  reason: ShopReason,
): Promise<Order | undefined> {
  const [row] = await query<OrderRow>(client, REFUND, [reservationId, unitsReturned, reason]);
  return row && toOrder(row);
}

/** `refunded`: by this call. `known`: what the order was already. */
export type Refunding =
  | { outcome: 'refunded' | 'known'; order: Order }
  | { outcome: 'sale_not_found' | 'reservation_not_found' | 'sale_closed' };

/**
 * The shop gives a PAID order's money back: PAID → REFUNDED, its units out of `sold`, and a row in the outbox.
 * @param returnUnits whether its units are for sale again; not in a sale that is closed, in which nothing is sold
 */
export function refundOrder(
  pool: Pool,
  { saleId, reservationId }: Pick<Wanted, 'saleId' | 'reservationId'>,
  returnUnits: boolean,
  by = COMMAND,
): Promise<Refunding> {
  return transaction(pool, async (client): Promise<Refunding> => {
    const sale = await getSaleLocked(client, saleId);
    if (!sale) return { outcome: 'sale_not_found' };
    const [found] = await query<OrderRow>(client, FIND, [reservationId, saleId]);
    if (!found) return { outcome: 'reservation_not_found' };
    if (found.status === 'REFUNDED') return { outcome: 'known', order: toOrder(found) };
    if (sale.state === 'closed' && returnUnits) return { outcome: 'sale_closed' };
    const order = await refundPaid(client, reservationId, returnUnits, 'by_shop');
    if (!order) return { outcome: 'known', order: toOrder(found) };
    const before = { reservationId, status: found.status };
    const after = { reservationId, status: order.status, unitsReturned: returnUnits };
    await writeJournal(client, by, { action: 'refund', saleId, before, after });
    return { outcome: 'refunded', order };
  });
}

const REPORT = {
  name: 'report-refund',
  text: `update refunds set status = $2, updated_at = now(),
           last_error = case when $2 = 'FAILED' then 'the provider reported that the refund failed' end
         where payment_id = $1 and (status in ('PENDING', 'SUBMITTED') and ($2 = 'FAILED' or amount <= $3)
                                    or status = 'SUCCEEDED' and $2 = 'FAILED' and amount > 0)
         returning refund_id`,
};
const PAID_BY = {
  name: 'paid-by',
  text: `select reservation_id as "reservationId", amount, currency from payments where payment_id = $1 and status = 'APPLIED'`,
};
const SALE_OF_ORDER = { name: 'sale-of-order', text: `select sale_id from sale_orders where reservation_id = $1` };

/**
 * What a provider says of a refund: how far ours is, or that one was made without us. The latter, when it is of all
 * that an order was paid with, refunds the order; its units are not sold again, since they may have been shipped. Of a
 * part it is remembered as an event alone. A refund that succeeded may still fail later, at the buyer's bank: FAILED is
 * the last word, in whatever order the two are heard.
 */
export async function reportRefund(
  client: Queryable,
  event: Pick<KnownEvent, 'type' | 'paymentId' | 'amount' | 'currency'>,
): Promise<{ outcome: string; ended: Order[] } | undefined> {
  const status = event.type === 'refund.succeeded' ? 'SUCCEEDED' : 'FAILED';
  const reported = await query(client, REPORT, [event.paymentId, status, event.amount]);
  if (reported.length > 0) return { outcome: `refund ${status}`, ended: [] };
  if (status === 'FAILED') return undefined;
  const [paid] = await query<Pick<KnownEvent, 'reservationId' | 'amount' | 'currency'>>(client, PAID_BY, [
    event.paymentId,
  ]);
  if (!paid) return undefined;
  if (event.amount < paid.amount || event.currency !== paid.currency) return { outcome: 'partial_refund', ended: [] };
  const order = await refundAtProvider(client, paid.reservationId);
  return order && { outcome: 'refunded_at_provider', ended: [order] };
}

/** @returns the order, REFUNDED by this call; undefined when it is not PAID (any more) */
async function refundAtProvider(client: Queryable, reservationId: string): Promise<Order | undefined> {
  await lockSaleOf(client, reservationId);
  return refundPaid(client, reservationId, false, 'at_provider');
}

async function lockSaleOf(client: Queryable, reservationId: string): Promise<void> {
  const [found] = await query<{ sale_id: string }>(client, SALE_OF_ORDER, [reservationId]);
  if (found) await getSaleLocked(client, found.sale_id);
}

const REFUNDED_BEFORE = {
  name: 'refunded-before',
  text: `select 1 from payment_events where payment_id = $1 and type = 'refund.succeeded' and amount >= $2 limit 1`,
};

/**
 * Pays an order by `pay`. If the payment was given back before we heard that it was made, the order is refunded at once.
 * @param pay tells whether it paid the order
 */
export async function payUnlessRefunded(
  client: Queryable,
  payment: Pick<KnownEvent, 'paymentId' | 'amount' | 'reservationId'>,
  pay: () => Promise<boolean>,
): Promise<{ paid: boolean; refunded?: Order | undefined }> {
  const refunded = (await query(client, REFUNDED_BEFORE, [payment.paymentId, payment.amount])).length > 0;
  if (refunded) await lockSaleOf(client, payment.reservationId); // before the order, as everywhere
  if (!(await pay())) return { paid: false };
  return {
    paid: true,
    ...(refunded ? { refunded: await refundPaid(client, payment.reservationId, false, 'at_provider') } : {}),
  };
}

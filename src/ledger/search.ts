/** What a person who looks after a sale asks the ledger: whose order is that, and how far behind the gate is it. */
import type { OrderStatus } from '../domain/reservation.ts';
import { query, type Queryable } from './db.ts';
import { columns, REFUND_OF_O, toOrder, type Order, type OrderRow } from './orders.ts';
import type { Cursor } from './sales.ts';

const SEARCH = {
  name: 'search-orders',
  text: `
    select ${columns('o')}, ${REFUND_OF_O} as refund, changed_xid::text as xid
    from sale_orders o
    where sale_id = $1 and status = any($2) and starts_with(user_id, $3)
      and ($4::text is null or (changed_xid, reservation_id) < ($4::text::xid8, $5::uuid))
    order by changed_xid desc, reservation_id desc limit $6`,
};

/**
 * Orders of a sale, those that changed last first. Unlike {@link listOrders}, for people: one that commits late may be
 * skipped. Reads the index of the sale's orders, all of it for a buyer who has none: of a million orders a second.
 * @param wanted `buyer`: how the buyer's id begins; `before`: the last of the page before, null for the first page
 */
export async function searchOrders(
  db: Queryable,
  wanted: { saleId: string; statuses: readonly OrderStatus[]; buyer: string; before: Cursor | null; limit: number },
): Promise<{ orders: Order[]; next: Cursor | null }> {
  const { saleId, statuses, buyer, before, limit } = wanted;
  const values = [saleId, statuses, buyer, before?.xid ?? null, before?.reservationId ?? null, limit];
  const rows = await query<OrderRow & { xid: string }>(db, SEARCH, values);
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    orders: rows.map(toOrder),
    next: last ? { xid: last.xid, reservationId: last.reservation_id } : null,
  };
}

/** From a hold at the gate (its clock) to its order (the ledger's), in milliseconds, over `orders` orders. */
export type Lag = { orders: number; medianMs: number; maxMs: number };

const newestOf = (status: OrderStatus) =>
  `(select recorded_at, reserved_at from sale_orders where sale_id = $1 and status = '${status}'
    order by changed_xid desc, reservation_id desc limit 100)`;
const LAG = {
  name: 'order-lag',
  text: `
    select count(*)::int as orders, percentile_disc(0.5) within group (order by ms) as "medianMs", max(ms) as "maxMs"
    from (
      select greatest(0, extract(epoch from recorded_at - reserved_at) * 1000)::bigint as ms
      from (${newestOf('PENDING_PAYMENT')} union all ${newestOf('PAID')}) as newest
      order by recorded_at desc limit 100
    ) as lags`,
};

/** Of the last hundred orders of a sale that are live, whichever worker recorded them; null when there is none. */
export async function orderLag(db: Queryable, saleId: string): Promise<Lag | null> {
  const [row] = await query<Lag>(db, LAG, [saleId]);
  return row && row.orders > 0 ? row : null;
}

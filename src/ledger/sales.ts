/** Sales in the ledger: settings with their version, stock, fences, and listings for whoever ships. */
import { columns, lockSales, REFUND_OF_O, toOrder, type Order, type OrderRow } from './orders.ts';
import type { Sale, SaleSettings } from '../domain/sale.ts';
import type { Hold, OrderStatus } from '../domain/reservation.ts';
import { query, type Queryable } from './db.ts';

const COLUMNS = `
  s.sale_id as "saleId", s.name, s.state, (extract(epoch from s.starts_at) * 1000)::bigint as "startsAt",
  (extract(epoch from s.ends_at) * 1000)::bigint as "endsAt", t.total, s.hold_seconds as "holdSeconds",
  s.max_per_reservation as "maxPerReservation", s.price_amount as amount, s.currency, s.settings,
  (extract(epoch from s.opened_at) * 1000)::bigint as "openedAt"`;

const LIST = {
  name: 'list-sales',
  text: `select ${COLUMNS} from sales s join sale_stock t using (sale_id) order by sale_id`,
};
const GET = {
  name: 'get-sale',
  text: `select ${COLUMNS} from sales s join sale_stock t using (sale_id) where sale_id = $1`,
};
const GET_LOCKED = { name: 'get-sale-locked', text: `${GET.text} for no key update of s, t` };

export async function listSales(db: Queryable): Promise<Sale[]> {
  return query<Sale>(db, LIST);
}

export async function getSale(db: Queryable, saleId: string): Promise<Sale | undefined> {
  return (await query<Sale>(db, GET, [saleId]))[0];
}

/**
 * The sale, locked until the transaction ends: no order of it is recorded or ended meanwhile. Its stock is locked first,
 * as by those who need no more than that.
 */
export async function getSaleLocked(client: Queryable, saleId: string): Promise<Sale | undefined> {
  await lockSales(client, [saleId]);
  return (await query<Sale>(client, GET_LOCKED, [saleId]))[0];
}

const CREATE = {
  name: 'create-sale',
  text: `
    with sale as (
      insert into sales (sale_id, name, starts_at, ends_at, hold_seconds, max_per_reservation, price_amount, currency)
      values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (sale_id) do nothing returning sale_id
    )
    insert into sale_stock (sale_id, total) select sale_id, $9 from sale returning sale_id`,
};

/** @returns whether it is new; an existing sale is left as it is */
export async function createSale(db: Queryable, saleId: string, settings: SaleSettings): Promise<boolean> {
  const { name, startsAt, endsAt, holdSeconds, maxPerReservation, price, total } = settings;
  const values = [saleId, name, startsAt, endsAt, holdSeconds, maxPerReservation, price.amount, price.currency, total];
  return (await query(db, CREATE, values)).length > 0;
}

const CHANGE = {
  name: 'change-sale',
  text: `
    with stock as (update sale_stock set total = $9 where sale_id = $1)
    update sales set name = $2, starts_at = to_timestamp($3 / 1000.0), ends_at = to_timestamp($4 / 1000.0),
      hold_seconds = $5, max_per_reservation = $6, price_amount = $7, currency = $8, state = $10, settings = $11
    where sale_id = $1`,
};

/** Writes the whole settings of a sale that is locked. */
export async function changeSale(client: Queryable, sale: Sale): Promise<void> {
  const { saleId, name, startsAt, endsAt, holdSeconds, maxPerReservation, amount, currency, total, state, settings } =
    sale;
  await query(client, CHANGE, [
    ...[saleId, name, startsAt, endsAt, holdSeconds, maxPerReservation, amount, currency, total, state, settings],
  ]);
}

const OPENED = {
  name: 'sale-opened',
  text: `update sales set opened_at = coalesce(opened_at, now()) where sale_id = $1`,
};

/** The gate of this sale was opened: from here on an empty gate is a lost one. */
export async function markOpened(db: Queryable, saleId: string): Promise<void> {
  await query(db, OPENED, [saleId]);
}

const LIVE = `select reservation_id as "reservationId", sale_id as "saleId", user_id as "userId", qty, amount, currency,
    (extract(epoch from reserved_at) * 1000)::bigint as "reservedAt",
    (extract(epoch from expires_at) * 1000)::bigint as "expiresAt"
  from sale_orders where sale_id = $1 and status in ('PENDING_PAYMENT', 'PAID')`;
const LIVE_PAGE = { name: 'live-page', text: `${LIVE} and user_id > $2 order by user_id limit $3` };
const LIVE_SINCE = { name: 'live-since', text: `${LIVE} and changed_xid >= $2::text::xid8` };
const HORIZON = { name: 'horizon', text: `select pg_snapshot_xmin(pg_current_snapshot())::text as xid` };

/** Live orders of a sale as holds, a page of buyers after the given one. */
export async function liveHolds(db: Queryable, saleId: string, afterUser: string, limit: number): Promise<Hold[]> {
  return query<Hold>(db, LIVE_PAGE, [saleId, afterUser, limit]);
}

/** Live orders that became what they are in a transaction that was not over at the horizon. */
export async function liveHoldsSince(db: Queryable, saleId: string, horizon: string): Promise<Hold[]> {
  return query<Hold>(db, LIVE_SINCE, [saleId, horizon]);
}

/** A point in the order of transactions: all before it are over and visible. */
export async function horizonNow(db: Queryable): Promise<string> {
  const [row] = await query<{ xid: string }>(db, HORIZON);
  return row?.xid ?? '0';
}

export type LedgerFigures = { total: number; sold: number; byStatus: Record<OrderStatus, number> };

const FIGURES = {
  name: 'ledger-figures',
  text: `select total, sold, (select coalesce(jsonb_object_agg(status, units), '{}') from (
           select status, sum(qty) as units from sale_orders where sale_id = $1 group by status) as counted) as "byStatus"
         from sale_stock where sale_id = $1`,
};

/** Units by status, beside total and sold. */
export async function ledgerFigures(db: Queryable, saleId: string): Promise<LedgerFigures | undefined> {
  const [row] = await query<LedgerFigures>(db, FIGURES, [saleId]);
  if (!row) return undefined;
  const none = { PENDING_PAYMENT: 0, PAID: 0, EXPIRED: 0, CANCELLED: 0, REJECTED: 0, REFUNDED: 0 };
  return { ...row, byStatus: { ...none, ...row.byStatus } };
}

/** `nextEndSeconds`: until the next unpaid order's deadline, by the ledger's clock, or null: nothing is unpaid. */
export type SoldOutSale = { saleId: string; sold: number; total: number; nextEndSeconds: number | null };

const SOLD_OUT = {
  name: 'sold-out-sales',
  text: `
    select t.sale_id as "saleId", t.sold, t.total, extract(epoch from (
        select min(expires_at) from sale_orders o where o.sale_id = t.sale_id and status = 'PENDING_PAYMENT'
      ) - clock_timestamp())::float8 as "nextEndSeconds"
    from sale_stock t where t.sale_id = any($1)`,
};

/** What may still come back of these sales, each of one moment. */
export async function soldOutSales(db: Queryable, saleIds: string[]): Promise<SoldOutSale[]> {
  return query<SoldOutSale>(db, SOLD_OUT, [saleIds]);
}

const ORDERS = {
  name: 'list-orders',
  text: `
    select ${columns('o')}, ${REFUND_OF_O} as refund, changed_xid::text as xid
    from sale_orders o
    where sale_id = $1 and status = $2 and changed_xid < pg_snapshot_xmin(pg_current_snapshot())
      and (changed_xid, reservation_id) > ($3::text::xid8, $4::uuid)
    order by changed_xid, reservation_id limit $5`,
};

/**
 * Orders of one status, in the order in which they came into it, after a cursor. Only what every earlier transaction
 * is known to be done with is shown, so that a reader who keeps the cursor and asks again misses none.
 */
export async function listOrders(
  db: Queryable,
  { saleId, status, after, limit }: { saleId: string; status: OrderStatus; after: Cursor; limit: number },
): Promise<{ orders: Order[]; next: Cursor | null }> {
  const rows = await query<OrderRow & { xid: string }>(db, ORDERS, [
    saleId,
    status,
    after.xid,
    after.reservationId,
    limit,
  ]);
  const last = rows.at(-1);
  return {
    orders: rows.map(toOrder),
    next: last ? { xid: last.xid, reservationId: last.reservation_id } : null,
  };
}

/** Where a listing stands. */
export type Cursor = { xid: string; reservationId: string };
export const START: Cursor = { xid: '0', reservationId: '00000000-0000-0000-0000-000000000000' };

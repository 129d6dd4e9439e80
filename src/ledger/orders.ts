/**
 * Orders: recording holds, ending orders, reading them. Whoever changes what is sold locks the sale's stock row first,
 * then orders: one fixed order of locks, so no deadlock, and decisions that stay true until they are written.
 */
import type { Hold, OrderReason, OrderStatus } from '../domain/reservation.ts';
import { buyerKey, decide, type Ledger, type NewOrder } from '../domain/recording.ts';
import { query, transaction, type Pool, type Queryable } from './db.ts';
import { fence } from './fences.ts';

/** An order as the rest of the program sees it. Times in epoch milliseconds. */
export type Order = Hold & {
  status: OrderStatus;
  reason: OrderReason | null;
  refund: string | null;
  /** Of a REFUNDED order: whether its units are for sale again; otherwise null. */
  unitsReturned: boolean | null;
};

/** Which reservation, of whom. */
export type Wanted = Pick<Hold, 'reservationId' | 'saleId' | 'userId'>;

export type OrderRow = {
  reservation_id: string;
  sale_id: string;
  user_id: string;
  qty: number;
  amount: number;
  currency: string;
  status: OrderStatus;
  reason: OrderReason | null;
  reserved_at: Date;
  expires_at: Date;
  units_returned: boolean | null;
  refund?: string | null;
};

// By name and never *: a prepared statement whose columns change fails from then on, so that a migration that adds one
// would stop every process that runs.
const COLUMNS = [
  ...['reservation_id', 'sale_id', 'user_id', 'qty', 'amount', 'currency', 'status', 'reason'],
  ...['reserved_at', 'expires_at', 'units_returned'],
];
export const columns = (of: string) => COLUMNS.map((column) => `${of}.${column}`).join(', ');

export const toOrder = (row: OrderRow): Order => ({
  reservationId: row.reservation_id,
  saleId: row.sale_id,
  userId: row.user_id,
  qty: row.qty,
  amount: row.amount,
  currency: row.currency,
  status: row.status,
  reason: row.reason,
  reservedAt: row.reserved_at.getTime(),
  expiresAt: row.expires_at.getTime(),
  refund: row.refund ?? null,
  unitsReturned: row.units_returned,
});

/** How far the money of order `o` is that is given back; of a refunded order its own, before that of money too much. */
export const REFUND_OF_O = `(select r.status from payments p join refunds r using (payment_id)
  where p.reservation_id = o.reservation_id::text order by r.reason in ('by_shop', 'at_provider') desc, r.created_at limit 1)`;

const LOCK_SALES = {
  name: 'lock-sales',
  text: `select sale_id, total, sold from sale_stock where sale_id = any($1::text[]) order by sale_id for no key update`,
};

/** Locks the stock rows of sales, in the order of their ids, until the transaction ends. */
export async function lockSales(client: Queryable, saleIds: string[]) {
  return query<{ sale_id: string; total: number; sold: number }>(client, LOCK_SALES, [[...new Set(saleIds)]]);
}

// The limit makes it one look into the unique index per buyer; a join would be planned once, when the table is small, as
// one that reads every live order of every sale.
const KNOWN = {
  name: 'known-orders',
  text: `
    select reservation_id, sale_id, user_id, status, true as same_id from sale_orders where reservation_id = any($1::uuid[])
    union all
    select o.reservation_id, o.sale_id, o.user_id, o.status, false
    from unnest($2::text[], $3::text[]) as buyer (sale_id, user_id)
    cross join lateral (
      select * from sale_orders where sale_id = buyer.sale_id and user_id = buyer.user_id and status in ('PENDING_PAYMENT', 'PAID') limit 1
    ) as o`,
};

async function look(client: Queryable, holds: Hold[]): Promise<Ledger> {
  const stock = await lockSales(
    client,
    holds.map(({ saleId }) => saleId),
  );
  const rows = await query<OrderRow & { same_id: boolean }>(client, KNOWN, [
    holds.map(({ reservationId }) => reservationId),
    holds.map(({ saleId }) => saleId),
    holds.map(({ userId }) => userId),
  ]);
  return {
    stock: new Map(stock.map(({ sale_id, total, sold }) => [sale_id, { total, sold }])),
    known: new Map(rows.filter((row) => row.same_id).map((row) => [row.reservation_id, row.status])),
    live: new Map(
      rows
        .filter((row) => !row.same_id)
        .map((row) => [buyerKey({ saleId: row.sale_id, userId: row.user_id }), row.reservation_id]),
    ),
  };
}

/** Writes orders, the journal and what is sold, all in one statement. */
export const INSERT = {
  name: 'insert-orders',
  text: `
    with added as (
      insert into sale_orders (reservation_id, sale_id, user_id, qty, amount, currency, status, reason,
                               live_reservation_id, reserved_at, expires_at)
      select reservation_id, sale_id, user_id, qty, amount, currency, status, reason, live_reservation_id,
             to_timestamp(reserved_at / 1000.0), to_timestamp(expires_at / 1000.0)
      from unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::text[], $8::text[],
                  $9::uuid[], $10::bigint[], $11::bigint[])
        as hold (reservation_id, sale_id, user_id, qty, amount, currency, status, reason, live_reservation_id,
                 reserved_at, expires_at)
      returning reservation_id, sale_id, qty, status
    ), sold as (
      select * from added where status = 'PENDING_PAYMENT'
    ), journal as (
      insert into ledger_entries (sale_id, reservation_id, kind, delta)
      select sale_id, reservation_id, 'order', qty from sold
    )
    update sale_stock set sold = sale_stock.sold + units
    from (select sale_id, sum(qty) as units from sold group by sale_id) as taken
    where sale_stock.sale_id = taken.sale_id`,
};

/** Its values: a column each. */
export function insertValues(orders: NewOrder[]): unknown[] {
  const column = <K extends keyof NewOrder>(name: K) => orders.map((order) => order[name]);
  return [
    ...[column('reservationId'), column('saleId'), column('userId'), column('qty'), column('amount')],
    ...[column('currency'), column('status'), column('reason'), column('liveReservationId')],
    ...[column('reservedAt'), column('expiresAt')],
  ];
}

async function insert(client: Queryable, orders: NewOrder[]): Promise<void> {
  if (orders.length > 0) await query(client, INSERT, insertValues(orders));
}

/**
 * Records holds as orders in one transaction: new ones as PENDING_PAYMENT, or REJECTED when there is no room or the
 * buyer has another live order; known ones are left as they are.
 * @returns the status of each hold's order by reservation id; a hold of a sale that does not exist is missing in it
 */
export function record(pool: Pool, holds: Hold[]): Promise<Map<string, OrderStatus>> {
  return transaction(pool, async (client) => {
    const { orders, status } = decide(holds, await look(client, holds));
    await insert(client, orders);
    return status;
  });
}

const END = {
  name: 'end-orders',
  text: `
    with unpaid as materialized (
      select reservation_id from sale_orders
      where reservation_id = any($1::uuid[]) and status = 'PENDING_PAYMENT'
        and ($2::text <> 'EXPIRED' or expires_at <= clock_timestamp())
      order by reservation_id for no key update
    ), ended as (
      update sale_orders set status = $2::text, reason = $3::text
      from unpaid where sale_orders.reservation_id = unpaid.reservation_id and status = 'PENDING_PAYMENT'
      returning ${columns('sale_orders')}
    ), journal as (
      insert into ledger_entries (sale_id, reservation_id, kind, delta)
      select sale_id, reservation_id, case $2::text when 'EXPIRED' then 'expiry' else 'cancel' end, -qty from ended
    ), stock as (
      update sale_stock set sold = sale_stock.sold - units
      from (select sale_id, sum(qty) as units from ended group by sale_id) as given
      where sale_stock.sale_id = given.sale_id
    )
    select ${columns('ended')} from ended`,
};

/**
 * Ends those of the orders that are still unpaid: status, stock and journal in one statement. The caller has locked
 * the orders' sales; the orders are locked by id, as by whoever adopts. EXPIRED is only for those whose time is over by the database's clock.
 * @returns the orders that it ended
 */
export async function end(
  client: Queryable,
  reservationIds: string[],
  as: { status: 'EXPIRED'; reason: null } | { status: 'CANCELLED'; reason: 'by_buyer' | 'payment_canceled' },
): Promise<Order[]> {
  return (await query<OrderRow>(client, END, [reservationIds, as.status, as.reason])).map(toOrder);
}

const STATUS = { name: 'order-status', text: `select ${columns('o')} from sale_orders o where reservation_id = $1` };

/**
 * The buyer gives up an unpaid reservation. Without an order yet, a CANCELLED one is written from the hold, so that
 * the message that is still in the queue finds its id known.
 * @param hold what the gate has of it, if anything
 * @returns the order as it is now; undefined when there is neither an order nor a hold of this buyer
 */
export function cancel(pool: Pool, wanted: Wanted, hold?: Hold) {
  return transaction(pool, async (client): Promise<Order | undefined> => {
    await lockSales(client, [wanted.saleId]);
    const [row] = await query<OrderRow>(client, STATUS, [wanted.reservationId]);
    if (!row) {
      if (!hold) return undefined;
      await insert(client, [{ ...hold, status: 'CANCELLED', reason: 'by_buyer', liveReservationId: null }]);
      return { ...hold, status: 'CANCELLED', reason: 'by_buyer', refund: null, unitsReturned: null };
    }
    if (row.sale_id !== wanted.saleId || row.user_id !== wanted.userId) return undefined;
    const [ended] = await end(client, [wanted.reservationId], { status: 'CANCELLED', reason: 'by_buyer' });
    if (ended) return ended;
    // Not pending when it was locked, or paid in this very moment: read what it has become.
    const [now] = await query<OrderRow>(client, STATUS, [wanted.reservationId]);
    return now && toOrder(now);
  });
}

const GET = {
  name: 'get-order',
  text: `
    select ${columns('o')}, ${REFUND_OF_O} as refund
    from sale_orders o where reservation_id = $1 and sale_id = $2 and user_id = $3`,
};

/** @returns the buyer's order, or undefined; another buyer's is none of theirs */
export async function getOrder(db: Queryable, { reservationId, saleId, userId }: Wanted): Promise<Order | undefined> {
  const [row] = await query<OrderRow>(db, GET, [reservationId, saleId, userId]);
  return row && toOrder(row);
}

// Whoever paid while the order was still in the queue has paid in time, however late it was recorded: their money is
// parked beside an order that is due at once, and must find it before the sweeper does.
const IS_DUE = `status = 'PENDING_PAYMENT' and expires_at <= clock_timestamp()
           and not exists (select from payments p where p.reservation_id = o.reservation_id::text and p.status = 'PARKED')`;
const DUE = {
  name: 'due-orders',
  text: `select reservation_id, sale_id from sale_orders o
         where ${IS_DUE} and ($2::text[] is null or sale_id = any($2)) order by expires_at limit $1`,
};

const DUE_SALES = {
  name: 'due-sales',
  text: `select distinct sale_id from sale_orders o
         where ${IS_DUE} and ($1::text[] is null or sale_id = any($1)) order by sale_id`,
};

/** @returns the sales in which something is due, of these (null: of all) */
export async function dueSales(db: Queryable, saleIds: string[] | null): Promise<string[]> {
  return (await query<{ sale_id: string }>(db, DUE_SALES, [saleIds])).map(({ sale_id }) => sale_id);
}

/** Which sales a keeper works on (null: all), and with which token on each. */
export type Scope = { saleIds: string[] | null; tokenOf: (saleId: string) => string };
export const everywhere: Scope = { saleIds: null, tokenOf: () => '' };

/**
 * Expires unpaid orders whose time is over, by the database's clock: one transaction per sale.
 * @returns the orders that this call expired, at most `limit`; several callers at once share them
 * @throws {StaleToken}
 */
export async function expireDue(pool: Pool, limit: number, scope: Scope = everywhere): Promise<Order[]> {
  const due = await query<{ reservation_id: string; sale_id: string }>(pool, DUE, [limit, scope.saleIds]);
  const expired: Order[] = [];
  for (const [saleId, rows] of Map.groupBy(due, ({ sale_id }) => sale_id)) {
    const ids = rows.map(({ reservation_id }) => reservation_id);
    const ended = await transaction(pool, async (client) => {
      await lockSales(client, [saleId]);
      await fence(client, saleId, scope.tokenOf(saleId));
      return end(client, ids, { status: 'EXPIRED', reason: null });
    });
    expired.push(...ended);
  }
  return expired;
}

const UNRELEASED = {
  name: 'unreleased-orders',
  text: `select ${columns('o')} from sale_orders o join sales s using (sale_id)
         where o.status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED') and o.gate_released_at is null
           and s.state <> 'closed' and ($4::text[] is null or o.sale_id = any($4)) and (o.sale_id, o.reservation_id) > ($1, $2::uuid)
         order by o.sale_id, o.reservation_id limit $3`,
};

/** Ended orders of which the gate was not yet seen to hold nothing, a page after the given one. */
export async function unreleased(
  db: Queryable,
  after: { saleId: string; reservationId: string },
  limit: number,
  saleIds: string[] | null = null,
): Promise<Order[]> {
  return (await query<OrderRow>(db, UNRELEASED, [after.saleId, after.reservationId, limit, saleIds])).map(toOrder);
}

// Several keepers may mark the same orders: each locks them in the order of their ids, whatever its plan.
const MARK_RELEASED = {
  name: 'mark-released',
  text: `
    with ended as materialized (
      select reservation_id from sale_orders
      where reservation_id = any($1::uuid[]) and gate_released_at is null and status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED')
      order by reservation_id for no key update
    )
    update sale_orders set gate_released_at = now() from ended where sale_orders.reservation_id = ended.reservation_id`,
};

export async function markReleased(db: Queryable, reservationIds: string[]): Promise<void> {
  await query(db, MARK_RELEASED, [reservationIds]);
}

const STATUS_OF = {
  name: 'status-of',
  text: `select reservation_id, status from sale_orders where reservation_id = any($1::uuid[])`,
};

/** @returns the status of each of these reservations that has an order */
export async function statusOf(db: Queryable, reservationIds: string[]): Promise<Map<string, OrderStatus>> {
  if (reservationIds.length === 0) return new Map();
  const rows = await query<OrderRow>(db, STATUS_OF, [reservationIds]);
  return new Map(rows.map((row) => [row.reservation_id, row.status]));
}

const LOCK_LIVE = {
  name: 'lock-live',
  text: `select ${columns('o')} from sale_orders o where reservation_id = any($1::uuid[]) and status in ('PENDING_PAYMENT', 'PAID')
         order by reservation_id for share`,
};

/** Those of the orders that are live, kept from ending until the transaction is over. */
export async function lockLive(client: Queryable, reservationIds: string[]): Promise<Hold[]> {
  return (await query<OrderRow>(client, LOCK_LIVE, [reservationIds])).map((row) => {
    const { status: _, reason: __, refund: ___, unitsReturned: ____, ...hold } = toOrder(row);
    return hold;
  });
}

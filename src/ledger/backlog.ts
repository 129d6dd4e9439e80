/** What the ledger tells of work that waits, for metrics: each statement reads a partial index, or little else. */
import type { OrderStatus } from '../domain/reservation.ts';
import { query, type Queryable } from './db.ts';

export type SoldUnits = { saleId: string; total: number; sold: number };

const SOLD = {
  name: 'sold-units',
  text: `select s.sale_id as "saleId", t.total, t.sold from sales s join sale_stock t using (sale_id)
         where s.state <> 'closed' order by sale_id`,
};

/** Units of the sales that are not closed. */
export async function soldUnits(db: Queryable): Promise<SoldUnits[]> {
  return query<SoldUnits>(db, SOLD);
}

/** Counts, and ages in seconds of the oldest; 0 when there is none. */
export type Backlog = {
  overdueSeconds: number;
  unreleased: number;
  parked: number;
  parkedSeconds: number;
  /** Webhooks that are still to be delivered, to all active endpoints together. */
  webhooks: number;
};

const BACKLOG = {
  name: 'backlog',
  text: `
    select
      coalesce((select greatest(0, extract(epoch from clock_timestamp() - min(expires_at))) from sale_orders
                where status = 'PENDING_PAYMENT'), 0)::float8 as "overdueSeconds",
      (select count(*) from sale_orders
       where status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED') and gate_released_at is null)::int as unreleased,
      (select count(*) from webhook_deliveries d join webhook_endpoints e using (endpoint_key)
       where d.status = 'PENDING' and e.active)::int as webhooks,
      parked.count::int as parked,
      coalesce(extract(epoch from clock_timestamp() - parked.oldest), 0)::float8 as "parkedSeconds"
    from (select count(*), min(received_at) as oldest from payments where status = 'PARKED') as parked`,
};

export async function backlog(db: Queryable): Promise<Backlog> {
  const [row] = await query<Backlog>(db, BACKLOG);
  if (!row) throw new Error('the ledger said nothing of its backlog');
  return row;
}

export type RefundBacklog = { status: string; count: number; oldestSeconds: number };

const REFUNDS = {
  name: 'refund-backlog',
  text: `select status, count(*)::int as count,
           extract(epoch from clock_timestamp() - min(created_at))::float8 as "oldestSeconds"
         from refunds where status <> 'SUCCEEDED' group by status`,
};

/** Refunds that are not made, by status. Reads the table of refunds whole. */
export async function refundBacklog(db: Queryable): Promise<RefundBacklog[]> {
  return query<RefundBacklog>(db, REFUNDS);
}

const BY_STATUS = {
  name: 'orders-by-status',
  text: `select status, count(*)::int as count from sale_orders where sale_id = any($1::text[]) group by status`,
};

/** Orders of these sales by status. Reads one entry of an index per order: ask seldom. */
export async function ordersByStatus(db: Queryable, saleIds: string[]) {
  return query<{ status: OrderStatus; count: number }>(db, BY_STATUS, [saleIds]);
}

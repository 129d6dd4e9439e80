/** Reads the ledger: Postgres, each pass of the audit in one snapshot that no other transaction can change. */
import { createHash } from 'node:crypto';
import { Socket } from 'node:net';
import pg from 'pg';
import type { LedgerCheck } from './ledger-checks.ts';
import type { Finding, Result } from './report.ts';
import { placeOf, within } from './stores.ts';

/** Ends a snapshot whose audit was stopped or frozen, so that it does not hold back vacuum for ever. */
const IDLE_LIMIT_MS = 600_000;
const ORDERS_PER_FETCH = 5000;

/** A sale's row with its stock. Times are epoch milliseconds; figures that may pass 2^53 are strings of digits. */
export type SaleRow = {
  saleId: string;
  state: string;
  opened: boolean;
  total: number;
  sold: number;
  settings: string;
  startsAt: number;
  endsAt: number;
  maxPerReservation: string;
  holdSeconds: string;
  amount: string;
  currency: string;
  /** The last token that was drawn for the sale's keepers; null when the shard has no fence. */
  fence: string | null;
  /** Number of orders by status. */
  orders: Record<string, number>;
};

/** `terms` is the rest of a hold as the gate must have it: qty|reservedAt|expiresAt|amount|currency. */
export type LiveOrder = { reservationId: string; userId: string; status: string; terms: string };
export type KnownOrder = { reservationId: string; saleId: string; userId: string; status: string };

/** For which sale (null: all) and with how much patience the ledger's checks look. */
export type LedgerArgs = { saleId: string | null; overdueMs: number; parkedMs: number };

const SALES = `
  select s.sale_id as "saleId", s.state, s.opened_at is not null as opened,
         coalesce(k.total, 0) as total, coalesce(k.sold, 0) as sold, s.settings::text,
         floor(extract(epoch from s.starts_at) * 1000)::float8 as "startsAt",
         floor(extract(epoch from s.ends_at) * 1000)::float8 as "endsAt",
         s.max_per_reservation::text as "maxPerReservation", s.hold_seconds::text as "holdSeconds",
         s.price_amount::text as amount, s.currency,
         (select coalesce(json_object_agg(c.status, c.orders), '{}')
            from (select o.status, count(*) as orders from sale_orders o
                   where o.sale_id = s.sale_id group by o.status) c) as orders
    from sales s
    left join (select sale_id, max(total) as total, max(sold) as sold from sale_stock group by sale_id) k using (sale_id)
   where $1::text is null or s.sale_id = $1
   order by s.sale_id`;

const LIVE_ORDERS = `
  select reservation_id::text as "reservationId", user_id as "userId", status,
         concat_ws('|', qty, round(extract(epoch from reserved_at) * 1000)::bigint,
                   round(extract(epoch from expires_at) * 1000)::bigint, amount, currency) as terms
    from sale_orders where sale_id = $1 and status in ('PENDING_PAYMENT', 'PAID')`;

const KNOWN_ORDERS = `
  select reservation_id::text as "reservationId", sale_id as "saleId", user_id as "userId", status
    from sale_orders where reservation_id = any($1::uuid[])`;

/** What one pass reads from. Every method throws {@link StoreAway} when Postgres does not answer as it should. */
export class Snapshot {
  #query: (text: string, values?: unknown[]) => Promise<unknown[]>;

  constructor(query: (text: string, values?: unknown[]) => Promise<unknown[]>) {
    this.#query = query;
  }

  /** All sales, or the one asked for, or none. */
  async sales(saleId: string | undefined): Promise<SaleRow[]> {
    const rows = (await this.#query(SALES, [saleId ?? null])) as Omit<SaleRow, 'fence'>[];
    const fences = (await this.#query('select shard, token::text from shard_fences')) as {
      shard: number;
      token: string;
    }[];
    const tokens = new Map(fences.map(({ shard, token }) => [shard, token]));
    return rows.map((row) => ({ ...row, fence: tokens.get(shardOf(row.saleId)) ?? null }));
  }

  /** Carries out one of the ledger's checks. */
  async check(check: LedgerCheck, args: LedgerArgs): Promise<Result> {
    const rows = await this.#query(
      `with args as (select $1::text as sale_id, $2::bigint as overdue_ms, $3::bigint as parked_ms),
            things as (${check.sql})
       select count(*)::float8 as looked,
              coalesce(json_agg(json_build_object('subject', subject, 'found', found) order by subject)
                         filter (where ok is not true), '[]') as findings
         from things`,
      [args.saleId, args.overdueMs, args.parkedMs],
    );
    const { looked, findings } = rows[0] as { looked: number; findings: Finding[] };
    return { name: check.name, ...(args.saleId === null ? {} : { saleId: args.saleId }), looked, findings };
  }

  /** The sale's live orders, a bounded number in memory at a time. */
  async *liveOrders(saleId: string): AsyncGenerator<LiveOrder> {
    await this.#query(`declare live_orders no scroll cursor for ${LIVE_ORDERS}`, [saleId]);
    for (;;) {
      const page = (await this.#query(`fetch ${ORDERS_PER_FETCH} from live_orders`)) as LiveOrder[];
      yield* page;
      if (page.length < ORDERS_PER_FETCH) break;
    }
    await this.#query('close live_orders');
  }

  /** Which of these reservations (UUIDs) are orders, of whatever sale. */
  async knownOrders(reservationIds: string[]): Promise<Map<string, KnownOrder>> {
    const known = new Map<string, KnownOrder>();
    for (let n = 0; n < reservationIds.length; n += ORDERS_PER_FETCH) {
      const page = await this.#query(KNOWN_ORDERS, [reservationIds.slice(n, n + ORDERS_PER_FETCH)]);
      for (const order of page as KnownOrder[]) known.set(order.reservationId, order);
    }
    return known;
  }
}

/** Of 256 shards: the first four bytes of sha1(saleId), big-endian, modulo 256. */
function shardOf(saleId: string): number {
  return createHash('sha1').update(saleId).digest().readUInt32BE(0) % 256;
}

/**
 * Gives the work a snapshot of the ledger on a connection of its own, and closes that whatever happens.
 * @throws {StoreAway} when Postgres is out of reach or does not answer within the limit; what the work throws
 */
export async function withSnapshot<T>(
  url: string,
  limitMs: number,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const store = `Postgres at ${placeOf(url)}`;
  const socket = new Socket();
  const connect = async () => {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'flashgate audit',
      statement_timeout: limitMs,
      lock_timeout: limitMs,
      idle_in_transaction_session_timeout: IDLE_LIMIT_MS,
      stream: () => socket,
    });
    client.on('error', () => {
      // Nobody waits for this connection at the moment. The next query on it fails and says why.
    });
    await client.connect();
    return client;
  };
  try {
    const client = await within(limitMs, store, connect());
    const query = async (text: string, values: unknown[] = []) =>
      (await within(limitMs, store, client.query(text, values))).rows as unknown[];
    await query('begin isolation level repeatable read read only');
    const result = await work(new Snapshot(query));
    await query('commit');
    await within(limitMs, store, client.end());
    return result;
  } finally {
    socket.destroy();
  }
}

/** The conditional UPDATE that three of the plain designs share: one statement, so one transaction and one round trip. */
import pg from 'pg';
import type { Buyer, Decision, Order } from './route.ts';

const UNIQUE_VIOLATION = '23505';

/** Room is taken only if there is some, in the row's own lock; a buyer who has an order is told of it. */
const RESERVE = {
  name: 'reserve',
  text: `
    with mine as (
      select reservation_id, qty, amount, reserved_at, expires_at from orders where sale_id = $1 and user_id = $2
    ), taken as (
      update stock set sold = sold + $3
      where sale_id = $1 and sold + $3 <= total and not exists (select from mine)
      returning amount * $3 as amount
    ), ordered as (
      insert into orders (sale_id, user_id, qty, amount) select $1, $2, $3, amount from taken
      returning reservation_id, qty, amount, reserved_at, expires_at
    ), journal as (
      insert into journal (sale_id, reservation_id, delta) select $1, reservation_id, qty from ordered
    )
    select 'ok' as outcome, * from ordered union all select 'dup', * from mine`,
};

/** An order as the database gives it; bigint as text. */
export type Row = { reservation_id: string; qty: number; amount: string; reserved_at: Date; expires_at: Date };

/** Connections to DATABASE_URL, `max` at most; one that breaks while idle is said on standard error and replaced. */
export function createPool(max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max, keepAlive: true });
  pool.on('error', (error) => console.error(error));
  return pool;
}

/** Amounts of the bench fit into a number. */
export function toOrder(row: Row): Order {
  const { reservation_id: reservationId, qty, amount, reserved_at: reservedAt, expires_at: expiresAt } = row;
  return { reservationId, qty, amount: Number(amount), reservedAt, expiresAt };
}

/** One round trip; two for a buyer who presses twice at the same moment. @throws what Postgres says, but for that */
export async function conditionalUpdate(pool: pg.Pool, { saleId, userId, qty }: Buyer): Promise<Decision> {
  const ask = () => pool.query<Row & { outcome: 'ok' | 'dup' }>({ ...RESERVE, values: [saleId, userId, qty] });
  const { rows } = await ask().catch((error: unknown) => {
    // The same buyer twice at the same moment: the second one finds the first one's order now.
    if (error instanceof pg.DatabaseError && error.code === UNIQUE_VIOLATION) return ask();
    throw error;
  });
  const [row] = rows;
  return row ? { outcome: row.outcome, order: toOrder(row) } : 'sold_out';
}

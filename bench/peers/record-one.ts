/** One order per transaction, as the plain worker records it: one prepared statement, repeatable by its reservation id. */
import type pg from 'pg';
import type { Hold } from '../../src/domain/reservation.ts';

const RECORD = {
  name: 'record-one',
  text: `
    with ordered as (
      insert into orders (reservation_id, sale_id, user_id, qty, amount, reserved_at, expires_at)
      values ($1, $2, $3, $4, $5, to_timestamp($6 / 1000.0), to_timestamp($7 / 1000.0))
      on conflict (reservation_id) do nothing returning reservation_id, sale_id, qty
    ), journal as (
      insert into journal (sale_id, reservation_id, delta) select sale_id, reservation_id, qty from ordered
    )
    update stock set sold = sold + ordered.qty from ordered
    where stock.sale_id = ordered.sale_id and sold + ordered.qty <= total`,
};

/** Records one hold as an order. There has to be room: this plain way writes the order also when there is none. */
export async function recordOne(pool: pg.Pool, hold: Hold): Promise<void> {
  const { reservationId, saleId, userId, qty, amount, reservedAt, expiresAt } = hold;
  await pool.query({ ...RECORD, values: [reservationId, saleId, userId, qty, amount, reservedAt, expiresAt] });
}

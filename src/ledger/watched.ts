/** Orders that somebody listens to: read together, however many. */
import { query, type Queryable } from './db.ts';
import { columns, REFUND_OF_O, toOrder, type Order, type OrderRow } from './orders.ts';

const GET_MANY = {
  name: 'get-orders',
  text: `
    select ${columns('o')}, ${REFUND_OF_O} as refund
    from sale_orders o where reservation_id = any($1::uuid[])`,
};

/** @returns the orders that there are, by reservation, whoever's they are */
export async function getOrders(db: Queryable, reservationIds: string[]): Promise<Map<string, Order>> {
  const rows = await query<OrderRow>(db, GET_MANY, [reservationIds]);
  return new Map(rows.map((row) => [row.reservation_id, toOrder(row)]));
}

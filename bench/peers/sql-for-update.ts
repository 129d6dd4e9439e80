/** The plain database as it is often done: the stock row is locked first (SELECT … FOR UPDATE), then all is decided. */
import type pg from 'pg';
import type { Buyer, Decision } from './route.ts';
import { serveShop } from './shop.ts';
import { toOrder, type Row } from './sql.ts';

const LOCK = { name: 'lock', text: 'select total, sold, amount from stock where sale_id = $1 for update' };
const COLUMNS = 'reservation_id, qty, amount, reserved_at, expires_at';
const MINE = { name: 'mine', text: `select ${COLUMNS} from orders where sale_id = $1 and user_id = $2` };
const TAKE = { name: 'take', text: 'update stock set sold = sold + $2 where sale_id = $1' };
const ORDER = {
  name: 'order',
  text: `insert into orders (sale_id, user_id, qty, amount) values ($1, $2, $3, $4) returning ${COLUMNS}`,
};
const JOURNAL = { name: 'journal', text: 'insert into journal (sale_id, reservation_id, delta) values ($1, $2, $3)' };

async function decide(client: pg.PoolClient, { saleId, userId, qty }: Buyer): Promise<Decision> {
  type Stock = { total: number; sold: number; amount: string };
  const [stock] = (await client.query<Stock>({ ...LOCK, values: [saleId] })).rows;
  const [mine] = (await client.query<Row>({ ...MINE, values: [saleId, userId] })).rows;
  if (mine) return { outcome: 'dup', order: toOrder(mine) };
  if (!stock || stock.sold + qty > stock.total) return 'sold_out';
  await client.query({ ...TAKE, values: [saleId, qty] });
  const [row] = (await client.query<Row>({ ...ORDER, values: [saleId, userId, qty, Number(stock.amount) * qty] })).rows;
  if (!row) throw new Error('an order was inserted and not returned');
  await client.query({ ...JOURNAL, values: [saleId, row.reservation_id, qty] });
  return { outcome: 'ok', order: toOrder(row) };
}

await serveShop((pool) => async (buyer) => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const decision = await decide(client, buyer);
    await client.query('commit');
    client.release();
    return decision;
  } catch (error) {
    client.release(true); // ends the connection, and the transaction with it
    throw error;
  }
});

/**
 * A plain SQL design as part of a shop: one application and one pool of connections for the sale and for everything
 * else, of which GET /catalogue/:productId is an example.
 */
import type pg from 'pg';
import { productQuery } from '../lib/product.ts';
import { serveDecisions, type Decide } from './route.ts';
import { createPool } from './sql.ts';

const POOL = 100;

/** @param design given the pool, decides about buyers */
export async function serveShop(design: (pool: pg.Pool) => Decide): Promise<void> {
  const pool = createPool(POOL);
  await serveDecisions(design(pool), {
    close: () => pool.end(),
    catalogue: async (productId) => (await pool.query<object>(productQuery(productId))).rows[0] ?? {},
  });
}

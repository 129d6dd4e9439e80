/**
 * What a process remembers for a tenth of a second after the database said "sold out". A returned unit is sold that
 * much later, and a buyer who holds may be told "sold out" meanwhile: their own process does not know who they are.
 */
import type pg from 'pg';
import type { Buyer, Decision } from './route.ts';
import { conditionalUpdate } from './sql.ts';

const REMEMBERED_MS = 100;
/** By sale, by `performance.now()`. */
const until = new Map<string, number>();

/** Whether the database said so within the last tenth of a second. */
export const remembersSoldOut = (saleId: string): boolean => performance.now() < (until.get(saleId) ?? 0);

/** The conditional UPDATE, unless this process remembers that nothing is left. */
export async function updateUnlessSoldOut(pool: pg.Pool, buyer: Buyer): Promise<Decision> {
  if (remembersSoldOut(buyer.saleId)) return 'sold_out';
  const decision = await conditionalUpdate(pool, buyer);
  // From the answer on: behind a long line for the pool, what is remembered from the question on is over by then.
  if (decision === 'sold_out') until.set(buyer.saleId, performance.now() + REMEMBERED_MS);
  return decision;
}

/** The conditional UPDATE, and the sold-out answer kept in the process: most refusals never reach the database. */
import { serveShop } from './shop.ts';
import { rememberSoldOut, remembersSoldOut } from './sold-out-memory.ts';
import { conditionalUpdate } from './sql.ts';

await serveShop((pool) => async (buyer) => {
  if (remembersSoldOut(buyer.saleId)) return 'sold_out';
  const askedAt = performance.now();
  const decision = await conditionalUpdate(pool, buyer);
  if (decision === 'sold_out') rememberSoldOut(buyer.saleId, askedAt);
  return decision;
});

/**
 * As sql-memory.ts, with a queue in front: a few transactions at a time, so that the rest of the shop keeps the
 * others of the pool; who waits in line is looked up again before the database is asked; too long a line is refused at once.
 */
import pLimit from 'p-limit';
import { serveShop } from './shop.ts';
import { remembersSoldOut, updateUnlessSoldOut } from './sold-out-memory.ts';

const AT_ONCE = 4;
const LONGEST_LINE = 5000;
const line = pLimit(AT_ONCE);

await serveShop((pool) => async (buyer) => {
  if (remembersSoldOut(buyer.saleId)) return 'sold_out';
  if (line.pendingCount >= LONGEST_LINE) return 'overloaded';
  return line(() => updateUnlessSoldOut(pool, buyer));
});

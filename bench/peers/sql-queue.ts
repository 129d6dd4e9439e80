/**
 * As sql-memory.ts, with a queue in front: a few transactions at a time, so that the rest of the shop keeps its
 * connections; who waits in line is looked up again before the database is asked; too long a line is refused at once.
 */
import pLimit from 'p-limit';
import { serveDecisions } from './route.ts';
import { remembersSoldOut, updateUnlessSoldOut } from './sold-out-memory.ts';
import { createPool } from './sql.ts';

const AT_ONCE = 4;
const LONGEST_LINE = 5000;
const pool = createPool(AT_ONCE);
const line = pLimit(AT_ONCE);

await serveDecisions(
  async (buyer) => {
    if (remembersSoldOut(buyer.saleId)) return 'sold_out';
    if (line.pendingCount >= LONGEST_LINE) return 'overloaded';
    return line(() => updateUnlessSoldOut(pool, buyer));
  },
  () => pool.end(),
);

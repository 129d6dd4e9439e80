/** The plain database, done well: one conditional UPDATE with its order and journal per request, a pool of 100. */
import { serveDecisions } from './route.ts';
import { conditionalUpdate, createPool } from './sql.ts';

const pool = createPool(100);
await serveDecisions(
  (buyer) => conditionalUpdate(pool, buyer),
  () => pool.end(),
);

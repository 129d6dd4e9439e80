/** The conditional UPDATE, and the sold-out answer kept in the process: most refusals never reach the database. */
import { serveDecisions } from './route.ts';
import { updateUnlessSoldOut } from './sold-out-memory.ts';
import { createPool } from './sql.ts';

const pool = createPool(100);

await serveDecisions(
  (buyer) => updateUnlessSoldOut(pool, buyer),
  () => pool.end(),
);

/** The conditional UPDATE, and the sold-out answer kept in the process: most refusals never reach the database. */
import { serveShop } from './shop.ts';
import { updateUnlessSoldOut } from './sold-out-memory.ts';

await serveShop((pool) => (buyer) => updateUnlessSoldOut(pool, buyer));

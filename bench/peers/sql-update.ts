/** The plain database, done well: one conditional UPDATE with its order and journal per request. */
import { serveShop } from './shop.ts';
import { conditionalUpdate } from './sql.ts';

await serveShop((pool) => (buyer) => conditionalUpdate(pool, buyer));

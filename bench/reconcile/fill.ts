/** A sale with very many orders, and a gate that is made to disagree with it. */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import type pg from 'pg';
import { gateKeys } from '../../src/gate/keys.ts';

export const SALE = 'million';

/** Live orders whose holds the gate forgot; holds of ended orders that are back; old holds without an order. */
export type Disagreement = { forgotten: number; backAgain: number; lost: number };

/** Units that nobody has yet, for the buyers who reserve meanwhile. */
const SPARE = 2_000_000;

/** Live orders `u1 …`, one unit each; and ended ones `x1 …` that were given back long ago. No journal: nobody reads it here. */
export async function fillLedger(db: pg.Client, live: number, { backAgain }: Disagreement): Promise<void> {
  await db.query('begin');
  await db.query(
    `insert into sales (sale_id, name, starts_at, ends_at, hold_seconds, max_per_reservation, price_amount, currency)
     values ($1, 'A million', now() - interval '1 day', now() + interval '1 day', 86400, 4, 500, 'EUR')`,
    [SALE],
  );
  await db.query('insert into sale_stock (sale_id, total, sold) values ($1, $2, $3)', [SALE, live + SPARE, live]);
  const orders = (from: string, status: string) => `
    insert into sale_orders (reservation_id, sale_id, user_id, qty, amount, currency, status, reserved_at, expires_at, gate_released_at)
    select md5('${from}' || n)::uuid, $1, '${from}' || n, 1, 500, 'EUR', '${status}', date_trunc('milliseconds', now()),
      date_trunc('milliseconds', now()) + interval '1 day', ${status === 'EXPIRED' ? 'now()' : 'null'}
    from generate_series(1, $2::int) n`;
  await db.query(orders('u', 'PENDING_PAYMENT'), [SALE, live]);
  await db.query(orders('x', 'EXPIRED'), [SALE, backAgain]);
  await db.query('commit');
  await db.query('vacuum analyze sale_orders');
}

/** Makes the gate disagree, as a failover and a queue that lost something would; its own figures still add up. */
export async function disagree(
  redis: Redis,
  live: number,
  { forgotten, backAgain, lost }: Disagreement,
): Promise<void> {
  const [stock, buyers, holds, , sale] = gateKeys(SALE);
  const every = Math.floor(live / forgotten);
  const gone = Array.from({ length: forgotten }, (_, n) => `u${1 + n * every}`);
  await inPipelines(gone, (users) =>
    redis
      .pipeline()
      .srem(buyers, ...users)
      .hdel(holds, ...users)
      .exec(),
  );
  const now = Date.now();
  const old = now - 3_600_000;
  const added: [string, string][] = [];
  for (let n = 1; n <= backAgain; n += 1) added.push([`x${n}`, hold(md5(`x${n}`), now)]);
  for (let n = 1; n <= lost; n += 1) added.push([`l${n}`, hold(md5(`l${n}`), old)]);
  await inPipelines(added, (pairs) =>
    redis
      .pipeline()
      .sadd(buyers, ...pairs.map(([user]) => user))
      .hset(holds, ...pairs.flat())
      .exec(),
  );
  const more = backAgain + lost - forgotten;
  await redis.multi().hincrby(sale, 'held', more).decrby(stock, more).exec();
}

const hold = (id: string, reservedAt: number) => [id, 1, reservedAt, reservedAt + 86_400_000, 500, 'EUR'].join('|');

async function inPipelines<T>(items: T[], run: (part: T[]) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < items.length; n += 1000) await run(items.slice(n, n + 1000));
}

/** As Postgres writes `md5(text)::uuid`. */
function md5(text: string): string {
  const hex = createHash('md5').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

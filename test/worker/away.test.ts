/** Postgres away: nothing is acknowledged, nothing becomes a dead letter, and the worker goes on by itself. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../../src/ledger/migrate.ts';
import { gateIsThere, newSale, openHouse, until, win, type House } from '../ledger/house.ts';
import { privatePostgres } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { countReceives, depth, send, untilEmpty, withWorker } from './queue.ts';

let fresh: Stores;
let postgres: Awaited<ReturnType<typeof privatePostgres>>;
let house: House;

beforeAll(async () => {
  [fresh, postgres] = await Promise.all([freshStores({ visibilitySeconds: 1 }), privatePostgres()]);
  await migrate(postgres.url);
  const own = { ...fresh, databaseUrl: postgres.url, env: { ...fresh.env, DATABASE_URL: postgres.url } };
  house = await openHouse({ fresh: own, env: { DB_STATEMENT_TIMEOUT_MS: '800', DB_CONNECT_TIMEOUT_MS: '500' } });
});
afterAll(async () => {
  await house.close();
  await fresh.drop();
});

/** Asked anew each time: the file's own client dies with the server. */
async function recorded(saleId: string): Promise<number> {
  const { rows } = await house.pool.query<{ n: number }>(
    `select count(*)::int as n from sale_orders where sale_id = $1`,
    [saleId],
  );
  return rows[0]?.n ?? 0;
}
const winners = (saleId: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => win(house, saleId, `buyer-${n}`)));

test('killed in the middle of the work, away for a while, then back', async () => {
  const saleId = await newSale(house, { total: 500 });
  await send(house, await winners(saleId, 400));
  const receives = countReceives(house);
  await withWorker(
    house,
    async () => {
      await until(async () => (await recorded(saleId)) > 0);
      postgres.kill('SIGKILL');
      await postgres.exited;
      await sleep(4000); // more than the back-off of a message that is given back
      await postgres.restart();
      expect(await untilEmpty(house, 30_000)).toBe(0);
    },
    { batch: 20 },
  );
  expect(await recorded(saleId)).toBe(400);
  expect(Math.max(...receives.values())).toBe(1);
  expect(house.log.map(({ msg }) => msg)).toContain('the holds of a sale cannot be recorded now');
}, 60_000);

test('frozen: it answers nothing at all, and is given up in time; stopping meanwhile is prompt', async () => {
  const saleId = await newSale(house, { total: 10 });
  const holds = await winners(saleId, 5);
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  const all = [postgres.pid];
  const started = await withWorker(house, async () => {
    await until(async () => (await depth(house)).waiting === 0);
    process.kill(postgres.pid, 'SIGSTOP'); // first: from here on there is no new connection that would be missed
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where backend_type = 'client backend'`,
    );
    all.push(...rows.map(({ pid }) => pid));
    for (const pid of all) process.kill(pid, 'SIGSTOP');
    await send(house, holds);
    await sleep(4000); // the driver's own limit is a second beyond the server's
    return performance.now();
  });
  const stopped = performance.now() - started;
  for (const pid of all) process.kill(pid, 'SIGCONT');
  await admin.end();
  expect(stopped).toBeLessThan(10_000);
  const { waiting, inFlight, deadLetters } = await depth(house);
  expect({ left: waiting + inFlight, deadLetters }).toEqual({ left: 5, deadLetters: 0 });
  expect(house.log.some(({ msg }) => msg.startsWith('the ledger is away'))).toBe(true);
  await withWorker(house, async () => {
    expect(await untilEmpty(house)).toBe(0);
  });
  expect(await recorded(saleId)).toBe(5);
}, 40_000);

test('read-only, as a server that was demoted: nothing is given back, and it goes on by itself', async () => {
  const saleId = await newSale(house, { total: 10 });
  const holds = await winners(saleId, 5);
  // Connections are read-only that are made between here and there.
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query('alter role current_user set default_transaction_read_only = on');
  const another = house.another();
  await gateIsThere(another);
  const receives = countReceives(another);
  await withWorker({ ...house, ...another }, async () => {
    await send(house, holds);
    await sleep(4000);
    expect(receives.size).toBe(5);
    await admin.query('alter role current_user reset default_transaction_read_only');
    expect(await untilEmpty(house)).toBe(0);
  });
  expect(Math.max(...receives.values())).toBe(1);
  await admin.end();
  await another.close();
  expect(await recorded(saleId)).toBe(5);
}, 40_000);

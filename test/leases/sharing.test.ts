/** Two keepers, as processes, and forty sales: shared, asked about, wiped, and one of them killed. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { shardOf } from '../../src/domain/shard.ts';
import { until } from '../ledger/house.ts';
import { start, type Running } from '../repair/process.ts';
import * as k from './keepers.ts';
import type { House } from '../ledger/house.ts';

const SALES = 40;
vi.setConfig({ testTimeout: 2 * k.PATIENCE_MS });

let house: House;
let sales: string[];
let shards: number;
let one: Running;
let two: Running;
beforeAll(async () => {
  house = await k.openStores();
  sales = await k.openSales(house, SALES);
  shards = new Set(sales.map(shardOf)).size;
  [one, two] = [k.keep(house), k.keep(house)];
});
afterAll(async () => {
  await Promise.all([one.stop(), two.stop()]);
  await house.close();
});

const sweptBy = (running: Running) => [...k.sweeps(running).keys()];

test('they share them about evenly; what is due in a sale is swept by the one who has it, and nobody else', async () => {
  await k.untilShared(house, shards, one.pid, two.pid);
  const due = await k.dueOrders(house, sales);
  await k.untilHandled(house, due);
  await until(() => sweptBy(one).length + sweptBy(two).length >= shards, k.PATIENCE_MS); // logged after it is done
  const owners = await k.leases(house);
  expect(owners.size).toBe(shards);
  for (const keeper of [one, two]) {
    for (const shard of sweptBy(keeper)) expect(owners.get(shard), `shard ${shard}`).toBe(keeper.pid);
  }
  expect(new Set([...sweptBy(one), ...sweptBy(two)]).size, 'no shard twice').toBe(shards);
  const expired = [one, two].flatMap((keeper) => [...k.sweeps(keeper).values()]).reduce((sum, s) => sum + s.expired, 0);
  expect(expired).toBe(SALES);
});

test('sweep --once and reconcile --once beside them leave every sale to its keeper, and name it', async () => {
  const [saleId = ''] = sales;
  const owner = await house.redis.get(`lease:shard:${shardOf(saleId)}`);
  const sweep = start(['sweep', '--once'], house.settings);
  const reconcile = start(['reconcile', '--once', '--sale', saleId], house.settings);
  expect((await sweep.ended).code, JSON.stringify(sweep.said)).toBe(0);
  const left = sweep.said.filter(({ msg }) => msg.startsWith('left to the keeper that has them: '));
  expect(left.flatMap((line) => line['sales'] as string[]).sort()).toEqual([...sales].sort());
  expect((await reconcile.ended).code, 'the one sale that was asked for was not looked at').toBe(1);
  const said = reconcile.said.map(({ msg }) => msg);
  expect(said).toContain(`left to the keeper that has them: ${owner ?? 'nobody'}`);
  await k.untilShared(house, shards, one.pid, two.pid);
});

test('Redis loses everything, leases too: they agree again, the gates come back, what is due expires once', async () => {
  const due = await k.dueOrders(house, sales.slice(0, 10));
  await house.redis.flushdb();
  await k.untilHandled(house, due);
  await k.untilShared(house, shards, one.pid, two.pid);
  await until(async () => {
    const figures = await Promise.all(sales.map((saleId) => house.gate.figures(saleId)));
    return figures.every((figure) => figure !== undefined && figure.stock === 10 && figure.held === 0);
  }, k.PATIENCE_MS);
});

test('one is killed: the other has everything within a time to live and a pass, and none of it twice', async () => {
  const before = new Map([...(await k.leases(house))].filter(([, pid]) => pid === one.pid));
  expect(before.size).toBeGreaterThan(0);
  one.kill('SIGKILL');
  await one.ended;
  const due = await k.dueOrders(house, sales);
  await k.untilShared(house, shards, two.pid);
  await k.untilHandled(house, due);
  for (const saleId of sales) {
    expect(await house.gate.figures(saleId)).toMatchObject({ stock: 10, held: 0, forfeited: 0 });
  }
});

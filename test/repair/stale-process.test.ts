/** A keeper process that is stopped for longer than its lease, and goes on: the same as in stale.test.ts, with real ones. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shardOf } from '../../src/domain/shard.ts';
import * as h from './house.ts';
import { start } from './process.ts';

let house: h.House;
beforeAll(async () => {
  house = await h.openHouse({ env: { LEASE_TTL_MS: '3000' } });
});
afterAll(() => h.closeHouse(house));

test('another takes over, and the one that wakes up finds that out by itself', { timeout: 60_000 }, async () => {
  const saleId = await h.newSale(house);
  const ownerIs = async ({ pid }: { pid: number }) =>
    (await house.redis.get(`lease:shard:${shardOf(saleId)}`))?.split(':')[1] === String(pid);
  const env = { ...house.settings, LOG_LEVEL: 'info' };
  const frozen = start(['keep'], env);
  await h.until(() => ownerIs(frozen));
  frozen.kill('SIGSTOP');
  const due = await h.winOrder(house, saleId, 'ann', 2);
  await h.moveBack(house, due, 700_000);
  const other = start(['keep'], env);
  await h.until(async () => (await h.orderOf(house, due))?.marked === true);
  expect(await ownerIs(other)).toBe(true);
  frozen.kill('SIGCONT');
  await frozen.saying('a lease is let go');
  const again = await h.winOrder(house, saleId, 'ann', 3);
  await h.moveBack(house, again, 700_000);
  await h.until(async () => (await h.orderOf(house, again))?.marked === true);
  for (const keeper of [frozen, other]) expect(await keeper.stop()).toEqual({ code: 0, signal: null });
  expect(await h.books(house, saleId)).toMatchObject({ stock: 10, held: 0, sold: 0 });
  expect(await h.rejected(house)).toEqual([]);
  await h.expectSettled(house);
});

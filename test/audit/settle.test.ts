/** The audit of a system at work: what passes by itself does not count, what stays does. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AuditReport } from '../../src/audit/audit.ts';
import { hold, HOLD_MS, id, key, reservedAt, young } from './sound.ts';
import { auditStores, type AuditStores, namedBy, redChecks } from './stores.ts';

let stores: AuditStores;
beforeAll(async () => {
  stores = await auditStores();
});
beforeEach(() => stores.refill());
afterAll(() => stores.drop());

/** Audits with some settle time; after the nth look that settles nothing, does the nth thing. */
async function auditWhile(settleSeconds: number, ...things: (() => Promise<unknown>)[]): Promise<AuditReport> {
  const done: Promise<unknown>[] = [];
  const report = await stores.audit({ settleSeconds }, () => {
    const next = things[done.length];
    if (next) done.push(next());
  });
  await Promise.all(done);
  expect(done).toHaveLength(things.length);
  return report;
}

test('a mismatch that is gone within the settle time does not count, one that stays does', async () => {
  await stores.db.query(`update sales set settings = 2 where sale_id = 'live'`);
  await stores.redis.sadd(key('buyers'), 'zoe');
  const report = await auditWhile(1.5, () => stores.redis.hset(key('sale'), 'settings', 2));
  expect(redChecks(report)).toEqual(['buyers_are_holders']);
});

test('as soon as nothing is wrong any more, the audit is over', async () => {
  await stores.redis.sadd(key('buyers'), 'zoe');
  const began = performance.now();
  const report = await auditWhile(600, () => stores.redis.srem(key('buyers'), 'zoe'));
  expect(report.verdict).toBe('holds');
  expect(performance.now() - began).toBeLessThan(10_000);
});

test('another mismatch of the same check is not the same mismatch', async () => {
  await stores.redis.sadd(key('buyers'), 'zoe');
  const swap = () => stores.redis.multi().srem(key('buyers'), 'zoe').sadd(key('buyers'), 'zac').exec();
  expect((await auditWhile(1.5, swap)).verdict).toBe('holds');
});

test('a gate that is loaded within the settle time is judged, and its mismatches get that time too', async () => {
  await stores.redis.multi().hset(key('sale'), 'state', 'loading').sadd(key('buyers'), 'zoe', 'zac').exec();
  const report = await auditWhile(
    1.5,
    () => stores.redis.hset(key('sale'), 'state', 'open'),
    () => stores.redis.srem(key('buyers'), 'zoe'),
  );
  expect(report.verdict).toBe('broken');
  expect(namedBy(report, 'buyers_are_holders')).toEqual(['zac']);
});

test(
  'a sale that is being sold is never called broken, and what is broken in it is still found',
  { timeout: 40_000 },
  async () => {
    const buyer = (n: number) => ({ user: `crowd-${n}`, id: id(100_000 + n), qty: 1 });
    const fill = stores.redis.pipeline();
    for (let n = 0; n < 5000; n += 1)
      fill.hset(key('holds'), buyer(n).user, hold(buyer(n))).sadd(key('buyers'), buyer(n).user);
    await fill.hincrby(key('sale'), 'held', 5000).decrby(key('stock'), 5000).exec();

    let selling = true;
    const sell = async () => {
      for (let n = 5000; selling; n += 1) {
        const [comes, goes] = [buyer(n), buyer(n - 1000)];
        await stores.redis
          .multi()
          .sadd(key('buyers'), comes.user)
          .hset(key('holds'), comes.user, hold(comes, { at: Date.now() }))
          .hincrby(key('sale'), 'held', 1)
          .decr(key('stock'))
          .hincrby(key('sale'), 'version', 1)
          .exec();
        await stores.redis
          .multi()
          .srem(key('buyers'), goes.user)
          .hdel(key('holds'), goes.user)
          .hincrby(key('sale'), 'held', -1)
          .incr(key('stock'))
          .hincrby(key('sale'), 'version', 1)
          .exec();
      }
    };
    const sold = sell();
    try {
      const report = await stores.audit({ settleSeconds: 3 });
      expect(redChecks(report)).toEqual([]);
      expect(report.unjudged.every(({ what }) => what === 'held_is_sum_of_holds of sale live')).toBe(true);
      await stores.redis.hset(key('holds'), young.user, hold(young, { at: reservedAt - 2 * HOLD_MS }));
      expect(redChecks(await stores.audit({ settleSeconds: 3 }))).toEqual(['hold_has_order']);
    } finally {
      selling = false;
      await sold;
    }
  },
);

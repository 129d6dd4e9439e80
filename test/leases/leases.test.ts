/** Leases of several keepers in one process, on a real Redis and a real Postgres. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { StaleToken } from '../../src/domain/outcomes.ts';
import { shardOf } from '../../src/domain/shard.ts';
import { LeaseStore } from '../../src/gate/lease-store.ts';
import { keepOnce } from '../../src/keeper/keeper.ts';
import { Leases } from '../../src/keeper/leases.ts';
import { closeSale, setState } from '../../src/operations/sales.ts';
import { keeperOptions } from '../../src/wiring.ts';
import { startProxy, type Proxy } from '../gate/proxy.ts';
import { newSale, openHouse, recorder, until, type House } from '../ledger/house.ts';

const TTL_MS = 60_000;
const TIMEOUT_MS = 5000;

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.redis.flushdb();
});

const open: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A keeper's leases, with a connection and a log of its own. It renews only when it is told to. */
async function keeper({ ttlMs = TTL_MS, url = house.redisUrl, timeoutMs = TIMEOUT_MS } = {}) {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 20,
  });
  redis.on('error', () => undefined); // the command that it costs says it
  await until(() => redis.status === 'ready');
  const log = recorder();
  const leases = new Leases(new LeaseStore(redis, timeoutMs), house.pool, log.logger, { ttlMs });
  open.push(() => {
    redis.disconnect();
    return undefined;
  });
  return {
    leases,
    redis,
    said: () => log.lines.map(({ msg, shard, shards, reason }) => ({ msg, shard, shards, reason })),
  };
}

async function proxied(): Promise<Proxy> {
  const proxy = await startProxy(house.redisUrl);
  open.push(() => proxy.close());
  return proxy;
}

const owner = (shard: number) => house.redis.get(`lease:shard:${shard}`);
const ledgerToken = async (shard: number) =>
  (await house.db.query<{ token: string }>('select token from shard_fences where shard = $1', [shard])).rows[0]?.token;

describe('claiming', () => {
  test('a shard is its own, for the time to live, with the ledger’s newest token', async () => {
    const { leases } = await keeper();
    const before = Number(await ledgerToken(7));
    expect(await leases.claim(new Set([7]))).toEqual([7]);
    expect(await owner(7)).toBe(leases.nonce);
    expect(await house.redis.pttl('lease:shard:7')).toBeGreaterThan(TTL_MS / 2);
    expect(leases.token(7)).toBe(String(before + 1));
    expect(leases.token(7)).toBe(await ledgerToken(7));
  });

  test('what somebody else has is left alone, and no token is drawn for it', async () => {
    const [one, two] = [await keeper(), await keeper()];
    expect(await one.leases.claimOne(7)).toBeUndefined();
    const token = await ledgerToken(7);
    expect(await two.leases.claimOne(7)).toBe(one.leases.nonce);
    expect(two.leases.shards()).toEqual([]);
    expect(() => two.leases.token(7)).toThrow(StaleToken);
    expect(await ledgerToken(7)).toBe(token);
  });

  test('twenty at once: one has it', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => keeper()));
    await Promise.all(all.map(({ leases }) => leases.claimOne(9)));
    const winners = all.filter(({ leases }) => leases.shards().includes(9));
    expect(winners).toHaveLength(1);
    expect(await owner(9)).toBe(winners[0]?.leases.nonce);
  });

  test('confirmed by a renewal: a lease that ended while the token was drawn is none', async () => {
    const [slow, quick] = [await keeper({ ttlMs: 1500 }), await keeper()];
    await house.db.query('begin');
    await house.db.query('select 1 from shard_fences where shard = 11 for update');
    const claiming = slow.leases.claimOne(11);
    await until(async () => (await owner(11)) === slow.leases.nonce);
    await until(async () => (await owner(11)) === null);
    await house.redis.set('lease:shard:11', quick.leases.nonce, 'PX', TTL_MS);
    await house.db.query('commit');
    expect(await claiming).toBe(quick.leases.nonce);
    expect(slow.leases.shards()).toEqual([]);
  });

  test('Redis that forgot the counter changes nothing: tokens only grow', async () => {
    const [one, two] = [await keeper(), await keeper()];
    await one.leases.claimOne(7);
    await house.redis.flushdb();
    await two.leases.claimOne(7);
    expect(Number(two.leases.token(7))).toBe(Number(one.leases.token(7)) + 1);
  });

  test('only shards with living sales are leased, by a whole pass', async () => {
    const living = await newSale(house);
    const paused = await newSale(house);
    await setState(house.stores, paused, 'paused');
    const closed = await newSale(house);
    await setState(house.stores, closed, 'ended');
    await closeSale(house.stores, closed);
    const { leases } = await keeper();
    const { stores, sqs } = house;
    await keepOnce({ stores, sqs, leases, provider: undefined }, keeperOptions(house.config));
    const wanted = [shardOf(living), shardOf(paused)].sort((a, b) => a - b);
    expect(leases.shards().sort((a, b) => a - b)).toEqual(wanted);
    expect((await house.redis.keys('lease:shard:*')).sort()).toEqual(wanted.map((n) => `lease:shard:${n}`).sort());
  });
});

describe('renewing', () => {
  test('prolongs all that are held', async () => {
    const { leases } = await keeper();
    await leases.claim(new Set([1, 2]));
    for (const shard of [1, 2]) await house.redis.pexpire(`lease:shard:${shard}`, 1000);
    await leases.renew();
    for (const shard of [1, 2]) expect(await house.redis.pttl(`lease:shard:${shard}`)).toBeGreaterThan(TTL_MS / 2);
  });

  test('an answer of 0 is the end of it at once; the others stay', async () => {
    const { leases, said } = await keeper();
    await leases.claim(new Set([1, 2]));
    await house.redis.del('lease:shard:1');
    await leases.renew();
    expect(leases.shards()).toEqual([2]);
    expect(() => leases.token(1)).toThrow(StaleToken);
    expect(leases.token(2)).toBe(await ledgerToken(2));
    expect(said()).toEqual([{ msg: 'a lease is let go', shard: 1, reason: 'gone in Redis' }]);
  });

  test('somebody else’s is neither prolonged nor dropped', async () => {
    const { leases } = await keeper();
    await leases.claim(new Set([1]));
    await house.redis.set('lease:shard:1', 'somebody else', 'PX', 5000);
    await leases.renew();
    expect(leases.shards()).toEqual([]);
    await leases.drop(1);
    expect(await owner(1)).toBe('somebody else');
    expect(await house.redis.pttl('lease:shard:1')).toBeLessThanOrEqual(5000);
  });

  test('one failure is borne, two in a row are the end of all of them, in one line', async () => {
    const proxy = await proxied();
    const { leases, redis, said } = await keeper({ url: proxy.url });
    await leases.claim(new Set([1, 2]));
    proxy.cut();
    await until(() => redis.status !== 'ready');
    await leases.renew();
    expect(leases.shards()).toHaveLength(2);
    expect(leases.token(1)).toBe(await ledgerToken(1));
    await leases.renew();
    expect(leases.shards()).toEqual([]);
    expect(said().at(-1)).toMatchObject({ msg: 'leases are let go', reason: 'two renewals in a row failed' });
    expect(said().filter(({ msg }) => msg.includes('let go'))).toHaveLength(1);
  });

  test('a good one in between begins the count anew', async () => {
    const proxy = await proxied();
    const { leases, redis } = await keeper({ url: proxy.url });
    await leases.claim(new Set([1]));
    for (let n = 0; n < 3; n += 1) {
      proxy.cut();
      await until(() => redis.status !== 'ready');
      await leases.renew();
      proxy.mend();
      await until(() => redis.status === 'ready');
      await leases.renew();
    }
    expect(leases.shards()).toEqual([1]);
  });

  test('two thirds of the time to live after the last good one it is over, though Redis has it still', async () => {
    const ttlMs = 3000;
    const { leases, said } = await keeper({ ttlMs });
    await leases.claim(new Set([1, 2]));
    expect([1, 2].map((shard) => Number(leases.token(shard))).every((token) => token > 0)).toBe(true);
    await sleep((ttlMs * 2) / 3 + 50);
    expect(await owner(1)).toBe(leases.nonce);
    expect(() => leases.token(1)).toThrow(StaleToken);
    expect(leases.shards(), 'whoever was late for one was late for all').toEqual([]);
    expect(said()).toEqual([
      { msg: 'leases are let go', shards: expect.arrayContaining([1, 2]) as unknown, reason: 'not renewed in time' },
    ]);
  });

  test('a renewal does not revive what is over', async () => {
    const { leases } = await keeper({ ttlMs: 300 });
    await leases.claim(new Set([1]));
    await sleep(250);
    await leases.renew();
    expect(() => leases.token(1)).toThrow(StaleToken);
  });

  test('the timer renews for as long as it runs', async () => {
    const { leases } = await keeper({ ttlMs: 2700 });
    await leases.claim(new Set([1]));
    leases.start();
    open.push(() => leases.stop());
    const token = leases.token(1);
    await sleep(3000);
    expect(leases.token(1)).toBe(token);
    expect(await owner(1)).toBe(leases.nonce);
  });
});

describe('ending', () => {
  test('a clean stop gives everything back, and nothing of others', async () => {
    const [one, two] = [await keeper(), await keeper()];
    await one.leases.claimOne(1);
    await two.leases.claim(new Set([1, 2, 3]));
    await one.leases.stop();
    expect(await owner(1)).toBeNull();
    expect(one.leases.shards()).toEqual([]);
    const held = two.leases.shards();
    expect(held).not.toEqual([]);
    for (const shard of held) expect(await owner(shard)).toBe(two.leases.nonce);
    expect(await house.redis.zrange('lease:keepers', '0', '-1')).toEqual([two.leases.nonce]);
  });

  test('with Redis away it ends all the same, and says what stays behind', async () => {
    const proxy = await proxied();
    const { leases, redis, said } = await keeper({ url: proxy.url });
    await leases.claim(new Set([1]));
    proxy.cut();
    await until(() => redis.status !== 'ready');
    await leases.stop();
    expect(said().map(({ msg }) => msg)).toEqual([
      'a lease could not be given back: it ends by itself',
      'Redis could not be told that this keeper leaves: it notices by itself',
    ]);
    expect(await house.redis.pttl('lease:shard:1')).toBeGreaterThan(0);
  });
});

describe('sharing', () => {
  type Keeper = Awaited<ReturnType<typeof keeper>>;
  const wanted = new Set(Array.from({ length: 12 }, (_, n) => n * 20));

  /** Everybody claims, one after the other. @returns how many each has; no shard twice */
  async function round(keepers: Keeper[], shards = wanted): Promise<number[]> {
    for (const { leases } of keepers) await leases.claim(shards);
    const held = keepers.flatMap(({ leases }) => leases.shards());
    expect(new Set(held).size, 'no shard twice').toBe(held.length);
    return keepers.map(({ leases }) => leases.shards().length);
  }

  test('alone it has all; each one that joins gets its share, and each that leaves gives it back', async () => {
    const [a, b, c] = [await keeper(), await keeper(), await keeper()];
    expect(await round([a])).toEqual([12]);
    await round([a, b]);
    expect(await round([a, b])).toEqual([6, 6]);
    await round([a, b, c]);
    expect(await round([a, b, c])).toEqual([4, 4, 4]);
    await b.leases.stop();
    expect(await round([a, c])).toEqual([6, 6]);
    await a.leases.stop();
    expect(await round([c])).toEqual([12]);
  });

  test('what cannot be shared evenly is left to nobody', async () => {
    const [a, b] = [await keeper(), await keeper()];
    const five = new Set([1, 2, 3, 4, 5]);
    await round([a, b], five);
    const counts = await round([a, b], five);
    expect(counts.sort()).toEqual([2, 3]);
  });

  test('more keepers than shards: each shard has one', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => keeper()));
    await round(all, new Set([1, 2]));
    expect((await round(all, new Set([1, 2]))).sort()).toEqual([0, 0, 0, 1, 1]);
  });

  test('one that is silent for longer than the time to live counts no more', async () => {
    const [quiet, other] = [await keeper({ ttlMs: 2000 }), await keeper()];
    await round([quiet, other]);
    expect(await round([quiet, other])).toEqual([6, 6]);
    await sleep(2200);
    expect(await round([other])).toEqual([12]);
  });

  test('a shard whose last sale is closed is given back', async () => {
    const { leases } = await keeper();
    await leases.claim(new Set([1, 2]));
    expect(await leases.claim(new Set([2]))).toEqual([2]);
    expect(await owner(1)).toBeNull();
  });
});

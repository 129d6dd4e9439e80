/** A keeper that froze and wakes up later works with a token that is old: ledger and gate refuse it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { StaleToken } from '../../src/domain/outcomes.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { shardOf } from '../../src/domain/shard.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { keepOnce } from '../../src/keeper/keeper.ts';
import { reconcile } from '../../src/keeper/reconcile.ts';
import { expireDue } from '../../src/ledger/orders.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
import { finish } from '../../src/operations/finish.ts';
import { applySettings } from '../../src/operations/sales.ts';
import { keeperOptions } from '../../src/wiring.ts';
import { arrows } from './arrows.ts';
import * as h from './house.ts';

let house: h.House;
let other: ReturnType<h.House['another']>;
beforeAll(async () => {
  house = await h.openHouse();
  other = house.another();
  await h.gateIsThere(other);
});
afterAll(async () => {
  await h.expectSettled(house);
  await other.close();
  await h.closeHouse(house);
});

let saleId: string;
let due: Hold;
/** The token of the keeper that froze, and of the one that took over. */
let [old, fresh] = ['', ''];

beforeEach(async () => {
  saleId = await h.newSale(house, { total: 5 });
  due = await h.winOrder(house, saleId, 'ann', 2);
  await h.moveBack(house, due, 700_000);
  const shard = shardOf(saleId);
  expect(await house.wired.leases.claimOne(shard)).toBeUndefined();
  old = house.wired.leases.token(shard);
  await house.redis.del(`lease:shard:${shard}`); // it froze for longer than its lease
  expect(await other.leases.claimOne(shard)).toBeUndefined();
  fresh = other.leases.token(shard);
  expect(Number(fresh)).toBeGreaterThan(Number(old));
});
// The new keeper is still there, and does what was to be done.
const takeOver = async () => {
  const { stores, sqs, leases } = other;
  const pass = () => keepOnce({ stores, sqs, leases, provider: undefined }, keeperOptions(other.config));
  await pass();
  await pass(); // a gate that was lost is rebuilt first
  expect(await h.orderOf(house, due)).toMatchObject({ status: 'EXPIRED', marked: true });
  expect(await h.books(house, saleId)).toMatchObject({ stock: 5, held: 0, sold: 0 });
  await other.leases.drop(shardOf(saleId));
};

const tokenOf = (token: string) => () => token;

describe(arrows.keeperWakesUp.when, () => {
  test('the ledger refuses what it would write: it expires nothing, marks nothing, adopts nothing, opens nothing', async () => {
    const scope = { saleIds: [saleId], tokenOf: tokenOf(old) };
    await expect(expireDue(house.pool, 10, scope)).rejects.toThrow(StaleToken);
    expect(await h.orderOf(house, due)).toMatchObject({ status: 'PENDING_PAYMENT' });

    await expireDue(house.pool, 10, { ...scope, tokenOf: tokenOf(fresh) });
    await expect(finish(house.stores, [{ ...due, status: 'EXPIRED' }], tokenOf(old))).rejects.toThrow(StaleToken);
    expect(await h.orderOf(house, due)).toMatchObject({ marked: false });

    const missing = h.madeUp(saleId, 'bob');
    await h.recordOnly(house, missing);
    const memory = { resentAt: new Map<string, number>(), tokenOf: tokenOf(old) };
    const { reconcile: options } = keeperOptions(house.config);
    await expect(reconcile(house.stores, saleId, options, memory)).rejects.toThrow(StaleToken);
    expect(await house.gate.hold(saleId, 'bob')).toBeUndefined();

    await house.redis.del(...gateKeys(saleId));
    await expect(openGate(house.stores, saleId, Number(old))).rejects.toThrow(StaleToken);
    expect(await h.press(house, saleId, 'eve')).toMatchObject({ word: 'gate_not_loaded' });

    await h.cancel(house, missing);
    await takeOver();
  });

  test('the gate refuses it once it has seen the new one: every script, and nothing changes', async () => {
    const marked = await h.win(house, saleId, 'marked');
    await h.age(house, marked, 60_000);
    await house.gate.unqueued(saleId, 1_000_000, 1, fresh);
    const all = () => Promise.all(gateKeys(saleId).map((key) => house.redis.dumpBuffer(key)));
    const before = await all();
    const sale = await h.saleOf(house, saleId);
    const figures = { generation: (await house.gate.figures(saleId))?.generation ?? '', forfeited: 0 };
    const answers = {
      release: await house.gate.release(saleId, [due], old),
      forfeit: await house.gate.forfeit(saleId, [due], old),
      adopt: await house.gate.adopt(saleId, [h.madeUp(saleId, 'bob')], old),
      settle: await house.gate.settle(saleId, figures, old),
      unqueued: await house.gate.unqueued(saleId, 0, 10, old),
      configure: (await house.gate.configure({ ...sale, settings: 99, total: 50 }, 'decided', old)).answer,
      chunk: await house.gate.chunk(saleId, [h.madeUp(saleId, 'bob')], Number(old)),
      open: await house.gate.open(sale, Number(old)),
    };
    expect(new Set(Object.values(answers)), JSON.stringify(answers)).toEqual(new Set(['stale']));
    expect(await all()).toEqual(before);

    await house.redis.hset(gateKeys(saleId)[4], 'state', 'loading');
    expect(await house.gate.begin(saleId, Number(old))).toBe('stale');
    await house.redis.hset(gateKeys(saleId)[4], 'state', 'open');

    const changed = await h.changeSale(house, saleId, { total: 6 });
    await house.redis.hset(gateKeys(saleId)[4], 'settings', '1');
    await expect(applySettings(house.stores, saleId, old)).rejects.toThrow(StaleToken);
    await house.redis.hset(gateKeys(saleId)[4], 'settings', changed.sale.settings);
    await h.changeSale(house, saleId, { total: 5 });

    await h.cancel(house, marked);
    await takeOver();
  });

  test('a token that somebody drew beside it, for a command: it takes up its own lease again, with a new one', async () => {
    const shard = shardOf(saleId);
    const { stores, sqs, leases } = other;
    await tokenFor(house.pool, saleId);
    const pass = () => keepOnce({ stores, sqs, leases, provider: undefined }, keeperOptions(other.config));
    await pass();
    expect(leases.shards(), 'let go: its token is refused').not.toContain(shard);
    expect(await house.wired.leases.claimOne(shard), 'nobody else may have it until it ends').toBe(leases.nonce);
    await pass();
    expect(Number(leases.token(shard))).toBe(Number(fresh) + 2);
    await takeOver();
  });

  test('its whole pass lets the lease go and does nothing; the one after that leaves the sale to the other', async () => {
    await other.stores.gate.unqueued(saleId, 1_000_000, 1, fresh);
    const { stores, sqs, leases } = house.wired;
    const pass = () => keepOnce({ stores, sqs, leases, provider: undefined }, keeperOptions(house.config));
    expect(leases.shards()).toContain(shardOf(saleId));
    await pass();
    expect(leases.shards()).not.toContain(shardOf(saleId));
    expect(house.log.some(({ msg, shard }) => msg === 'a lease is let go' && shard === shardOf(saleId))).toBe(true);
    await pass();
    expect(await h.orderOf(house, due)).toMatchObject({ status: 'PENDING_PAYMENT' });
    await takeOver();
  });

  test('a renewal that finds the lease gone, or comes too late, is the end of it', async () => {
    const { leases } = house.wired;
    const shard = shardOf(saleId);
    await leases.renew();
    expect(() => leases.token(shard)).toThrow(StaleToken);
    await takeOver();
    const short = house.another({ LEASE_TTL_MS: '1000', GATE_TIMEOUT_MS: '100' });
    await h.gateIsThere(short);
    expect(await short.leases.claimOne(shard)).toBeUndefined();
    expect(Number(short.leases.token(shard))).toBeGreaterThan(Number(fresh));
    await h.until(() => {
      try {
        short.leases.token(shard);
        return false;
      } catch (error) {
        return error instanceof StaleToken;
      }
    });
    await short.leases.stop();
    await short.close();
  });
});

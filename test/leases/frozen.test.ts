/**
 * A keeper that is stopped in the midst of a write, past its lease, and continued: its write arrives when another keeper
 * has the shard, and is refused by the ledger, or by the gate.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { shardOf } from '../../src/domain/shard.ts';
import { record } from '../../src/ledger/orders.ts';
import { expectSound, until, type House } from '../ledger/house.ts';
import type { Running } from '../repair/process.ts';
import { holdingProxy, type HoldingProxy } from './holding-proxy.ts';
import * as k from './keepers.ts';

vi.setConfig({ testTimeout: 2 * k.PATIENCE_MS });

/** The frozen one's own limits must not be over when it wakes up: it is to hear what the stores say. */
const PATIENT = {
  DB_STATEMENT_TIMEOUT_MS: '50000',
  DB_LOCK_TIMEOUT_MS: '40000',
  DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: '100000',
  QUEUE_VISIBILITY_SECONDS: '200',
};
const SALES = 6;

let house: House;
let sales: string[];
let shards: number;
let toRedis: HoldingProxy;
let toPostgres: HoldingProxy;
beforeAll(async () => {
  house = await k.openStores();
  sales = await k.openSales(house, SALES);
  shards = new Set(sales.map(shardOf)).size;
  [toRedis, toPostgres] = [await holdingProxy(house.redisUrl), await holdingProxy(house.databaseUrl)];
});
afterAll(async () => {
  await expectSound(house);
  await Promise.all([toRedis.close(), toPostgres.close()]);
  await house.close();
});

let frozen: Running;
let other: Running | undefined;
beforeEach(async () => {
  frozen = k.keep(house, { ...PATIENT, REDIS_URL: toRedis.url, DATABASE_URL: toPostgres.url });
  await k.untilShared(house, shards, frozen.pid);
});
afterEach(async () => {
  frozen.kill('SIGCONT'); // a test that failed left it stopped
  await Promise.all([frozen.stop(), other?.stop()]);
  other = undefined;
});

/** Stops it when the write with this word is on its way; its leases are over when this is done. @returns another keeper */
async function freezeAt(proxy: HoldingProxy, word: string, cause: () => Promise<unknown>): Promise<Running> {
  let isHeld = false;
  proxy.holdBack(word, () => {
    frozen.kill('SIGSTOP');
    isHeld = true;
  });
  await cause();
  await until(() => isHeld, k.PATIENCE_MS);
  const heir = (other = k.keep(house));
  await until(async () => ![...(await k.leases(house)).values()].includes(frozen.pid), k.PATIENCE_MS);
  return heir;
}

/** It lets everything go in one line, and then carries on with its share. */
async function expectToCarryOn(heir: Running): Promise<void> {
  await until(() => k.lettingGo(frozen).length > 0, k.PATIENCE_MS);
  await k.untilShared(house, shards, frozen.pid, heir.pid);
  const lines = k.lettingGo(frozen);
  expect(lines, JSON.stringify(lines)).toHaveLength(1);
  expect(lines[0]).toMatchObject({ msg: 'leases are let go', reason: 'not renewed in time' });
  expect([...(lines[0]?.['shards'] as number[])].sort()).toEqual([...new Set(sales.map(shardOf))].sort());
}

test('the ledger refuses it: the token that it draws on is not the newest', async () => {
  const [saleId = ''] = sales;
  const due: Hold[] = [];
  const heir = await freezeAt(toPostgres, 'check-token', async () => due.push(await k.dueOrder(house, saleId)));
  await k.untilShared(house, shards, heir.pid);
  expect((await k.handled(house, due))[0], 'the frozen one has the sale’s row').toMatchObject({ expiries: 0 });
  toPostgres.pass();
  await until(() => toPostgres.answered() !== '', k.PATIENCE_MS);
  frozen.kill('SIGCONT');
  await k.untilHandled(house, due);
  await until(() => k.sweeps(heir).get(shardOf(saleId))?.expired === 1, k.PATIENCE_MS);
  await expectToCarryOn(heir);
  expect(k.sweeps(frozen).get(shardOf(saleId)), 'it has ended nothing').toBeUndefined();
});

test('the gate refuses it: it has heard of a newer token', async () => {
  const [, saleId = ''] = sales;
  const due = await k.overdue(house, saleId);
  const heir = await freezeAt(toRedis, due.reservationId, () => record(house.pool, [due]));
  await k.untilHandled(house, [due]);
  expect(await house.gate.figures(saleId)).toMatchObject({ held: 0, stock: 10 });
  toRedis.pass();
  await until(() => toRedis.answered().includes('stale'), k.PATIENCE_MS);
  frozen.kill('SIGCONT');
  await expectToCarryOn(heir);
  expect(k.sweeps(frozen).get(shardOf(saleId))?.released ?? 0, 'it has given nothing back').toBe(0);
  expect(await house.gate.figures(saleId)).toMatchObject({ held: 0, stock: 10 });
});

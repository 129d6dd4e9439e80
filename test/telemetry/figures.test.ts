/** What a keeper shows of the stores: the true figures, once over all keepers, cheap, and without a store that is away. */
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { figuresFrom, registerFigures, SALES_SHOWN } from '../../src/figures.ts';
import { shardOf } from '../../src/domain/shard.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { refundOrder } from '../../src/ledger/refunding.ts';
import { enqueue } from '../../src/operations/enqueue.ts';
import { Reading } from '../../src/reading.ts';
import type { Wired } from '../../src/wiring.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { event, madeUp, moveBack, newSale, openHouse, win, type House } from '../ledger/house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

/** A page of a keeper's figures, read anew: series by name and labels. */
async function page(wired: Pick<Wired, 'stores' | 'sqs' | 'leases'>): Promise<Map<string, number>> {
  const registry = new Registry();
  registerFigures(registry, figuresFrom(wired, house.config));
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(/\S+$/.exec(line)?.[0])]));
}

test('units, orders, what is overdue, parked and owed', async () => {
  const { wired, stores, pool } = house;
  const saleId = await newSale(house, { total: 10 });
  const holds = [];
  for (const user of ['a', 'b', 'c', 'd', 'e']) holds.push(await win(house, saleId, user));
  const [paid, late, queued] = holds;
  if (!paid || !late || !queued) throw new Error('won before');
  await recordHolds(stores, [paid, late]);
  await applyEvent(pool, event(paid, 'payment.succeeded'));
  await applyEvent(pool, event(paid, 'payment.succeeded', { paymentId: 'twice' }));
  await applyEvent(pool, event(queued, 'payment.succeeded'));
  await moveBack(house, late, 700_000);
  await enqueue(stores, queued, performance.now() + 5000);
  await stores.gate.drained();
  await wired.leases.claim(new Set([shardOf(saleId)]));
  const found = await page(wired);
  const of = (series: string) => found.get(series);
  const sale = `sale="${saleId}"`;
  expect(of(`flashgate_gate_units{${sale},kind="held"}`)).toBe(5);
  expect(of(`flashgate_gate_units{${sale},kind="stock"}`)).toBe(5);
  expect(of(`flashgate_ledger_units{${sale},kind="sold"}`)).toBe(2);
  expect(of(`flashgate_drift_units{${sale},side="gate"}`)).toBe(3);
  expect(of(`flashgate_drift_units{${sale},side="ledger"}`)).toBe(0);
  expect(of('flashgate_unqueued_holds')).toBe(4);
  expect(of('flashgate_gates_not_loaded')).toBe(0);
  expect(of('flashgate_orders{status="PAID"}')).toBe(1);
  expect(of('flashgate_orders{status="PENDING_PAYMENT"}')).toBe(1);
  expect(of('flashgate_orders{status="EXPIRED"}')).toBe(0);
  expect(of('flashgate_overdue_oldest_seconds')).toBeGreaterThan(90);
  expect(of('flashgate_overdue_oldest_seconds')).toBeLessThan(700);
  expect(of('flashgate_parked_payments')).toBe(1);
  expect(of('flashgate_refunds{status="PENDING"}')).toBe(1);
  expect(of('flashgate_refunds{status="FAILED"}')).toBe(0);
  expect(of('flashgate_refunds_oldest_seconds{status="PENDING"}')).toBeGreaterThan(0);
  expect(of('flashgate_queue_messages{state="waiting"}')).toBe(1);
  expect(of('flashgate_queue_messages{state="dead"}')).toBe(0);
  expect(of('flashgate_leases_held')).toBe(1);
  for (const store of ['redis', 'postgres', 'queue']) expect(of(`flashgate_store_up{store="${store}"}`)).toBe(1);

  await house.redis.flushdb();
  const lost = await page(wired);
  expect(lost.get('flashgate_gates_not_loaded')).toBe(1);
  expect([...lost.keys()].filter((series) => series.startsWith('flashgate_gate_units'))).toEqual([]);
  expect(lost.get(`flashgate_ledger_units{${sale},kind="sold"}`)).toBe(2);
});

test('a ledger that is ahead of the gate does not cancel a gate that is ahead of the ledger', async () => {
  const saleId = await newSale(house);
  await recordHolds(house.stores, [madeUp(saleId, 'forgotten')]);
  await house.wired.leases.claim(new Set([shardOf(saleId)]));
  const found = await page(house.wired);
  expect(found.get(`flashgate_drift_units{sale="${saleId}",side="ledger"}`)).toBe(1);
  expect(found.get(`flashgate_drift_units{sale="${saleId}",side="gate"}`)).toBe(0);
});

test('an order that has ended, refunds too, waits for its release', async () => {
  const series = 'flashgate_unreleased_orders';
  const before = (await page(house.wired)).get(series) ?? NaN;
  const saleId = await newSale(house);
  const hold = await win(house, saleId, 'ann');
  await recordHolds(house.stores, [hold]);
  await applyEvent(house.pool, event(hold, 'payment.succeeded'));
  await refundOrder(house.pool, hold, true);
  expect((await page(house.wired)).get(series)).toBe(before + 1);
});

test('two keepers show each sale once, and no more sales by name than are allowed', async () => {
  const sales: string[] = [];
  for (let n = 0; n < SALES_SHOWN + 3; n += 1) sales.push(await newSale(house, { total: 7 }));
  const other = house.another();
  await other.connected();
  const { rows } = await house.db.query<{ id: string }>(`select sale_id as id from sales where state <> 'closed'`);
  const wanted = new Set(rows.map(({ id }) => shardOf(id)));
  await house.wired.leases.claim(wanted);
  await other.leases.claim(wanted); // counts as alive from here on
  await house.wired.leases.claim(wanted);
  await other.leases.claim(wanted);
  const pages = [await page(house.wired), await page(other)];
  const units = pages.map((found) => [...found].filter(([series]) => /^flashgate_ledger_units.*"total"/.test(series)));
  for (const found of units) expect(found.length).toBeGreaterThan(1);
  const sum = units.flat().reduce((all, [, total]) => all + total, 0);
  const expected = await house.db.query<{ total: number }>('select sum(total)::int as total from sale_stock');
  expect(sum).toBe(expected.rows[0]?.total);
  await other.leases.stop();
  await other.close();

  await house.wired.leases.claim(wanted);
  const alone = await page(house.wired);
  const named = [...alone].filter(([series]) => /^flashgate_ledger_units.*"total"/.test(series));
  expect(named.length).toBe(SALES_SHOWN + 1);
  expect(named.reduce((all, [, total]) => all + total, 0)).toBe(sum);
  expect(alone.get('flashgate_ledger_units{sale="(others)",kind="total"}')).toBeGreaterThan(0);
});

test('a store that is away is told, its figures are missing, the others’ are there', async () => {
  const nowhere = house.another({ REDIS_URL: 'redis://127.0.0.1:1', SQS_ENDPOINT: 'http://127.0.0.1:1' });
  const found = await page(nowhere);
  expect(found.get('flashgate_store_up{store="redis"}')).toBe(0);
  expect(found.get('flashgate_store_up{store="queue"}')).toBe(0);
  expect(found.get('flashgate_store_up{store="postgres"}')).toBe(1);
  expect(found.has('flashgate_queue_messages{state="waiting"}')).toBe(false);
  expect(found.has('flashgate_parked_payments')).toBe(true);
  await nowhere.close();
  const noLedger = house.another({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
  await noLedger.connected();
  const without = await page(noLedger);
  expect(without.get('flashgate_store_up{store="postgres"}')).toBe(0);
  expect(without.get('flashgate_store_up{store="redis"}')).toBe(1);
  expect(without.has('flashgate_parked_payments')).toBe(false);
  expect(without.has('flashgate_gates_not_loaded')).toBe(false);
  await noLedger.close();
});

test('who asks does not wait for a store that says nothing', async () => {
  const silent = new Reading(() => new Promise<number>(() => undefined), { keepMs: 1, patienceMs: 10 });
  expect(await silent.latest()).toBeUndefined();
});

/** Readings whose time passes only when the test says so; reading takes `takesMs` of it. */
function timed(read: (reads: number) => number, keepMs: number, takesMs: number) {
  let [now, reads] = [0, 0];
  const slow = async () => {
    reads += 1;
    now += takesMs;
    await Promise.resolve();
    return read(reads);
  };
  const reading = new Reading(slow, { keepMs, patienceMs: 60_000, now: () => now });
  return { latest: () => reading.latest(), pass: (ms: number) => (now += ms), reads: () => reads };
}

test('however many ask, a store is read once; what was slow to read is kept for longer', async () => {
  const { latest, pass, reads } = timed((n) => n, 1, 100);
  expect(await Promise.all([latest(), latest(), latest()])).toEqual([1, 1, 1]);
  pass(4900); // over keepMs by far, but not over what reading it took, many times over
  expect(await latest()).toBe(1);
  expect(reads()).toBe(1);
  pass(100);
  expect(await latest()).toBe(2);
});

test('a reading that failed is no figure, and is not repeated at once', async () => {
  const second = (n: number) => {
    if (n === 2) throw new Error('away');
    return n;
  };
  const { latest, pass, reads } = timed(second, 50, 0);
  expect(await latest()).toBe(1);
  pass(50);
  expect(await latest()).toBeUndefined();
  pass(49);
  expect(await latest()).toBeUndefined();
  expect(reads()).toBe(2);
  pass(1);
  expect(await latest()).toBe(3);
});

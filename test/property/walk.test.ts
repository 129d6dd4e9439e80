/**
 * The whole walk at random, on real stores, with a small model beside it: after every step gate and ledger keep their
 * rules and are what the model says; at the end everything has come to rest and every refund was made once.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Gate } from '../../src/gate/gate.ts';
import { putSale } from '../../src/operations/sales.ts';
import { checkBoth, startSystem, type System } from '../races/system.ts';
import { Model } from './model.ts';
import { anyStep, type AnyStep, comeToRest, settingsOf, take } from './steps.ts';
import { World } from './world.ts';

let system: System;
let gate: Gate;
beforeAll(async () => {
  system = await startSystem();
  gate = new Gate(system.redis, { timeoutMs: 10_000, batch: 64, pending: 1000 });
});
afterAll(() => system.stop());

/** What must hold after every step. */
async function check(world: World, model: Model): Promise<void> {
  const { gate: units, ledger } = await checkBoth(world.system, world.saleId);
  expect(world.errors, 'what the program found wrong').toEqual([]);
  const held = model.all().filter(({ atGate }) => atGate);
  const holds = Object.fromEntries([...units.holds].map(([user, hold]) => [user, hold.split('|')[0]]));
  expect(holds, 'who holds what').toEqual(Object.fromEntries(held.map(({ user, id }) => [user, id])));
  expect(units.unqueued.sort(), 'marks').toEqual(
    held
      .filter(({ mark }) => mark !== undefined)
      .map(({ user }) => user)
      .sort(),
  );
  const gateTotal = model.total + model.gateBehind;
  expect({ total: units.total, stock: units.stock, forfeited: units.forfeited }).toEqual({
    ...{ total: gateTotal, stock: gateTotal - model.heldUnits(), forfeited: 0 },
  });
  expect(ledger.total).toBe(model.total);
  const statuses = Object.fromEntries([...ledger.orders].map(([id, { status }]) => [id, status]));
  const expected = model.all().flatMap(({ id, status }) => (status === undefined ? [] : [[id, status] as const]));
  expect(statuses, 'orders').toEqual(Object.fromEntries(expected));
  for (const [id, { status, userId }] of ledger.orders) {
    if (status === 'PENDING_PAYMENT' || status === 'PAID') expect(holds[userId], 'a live order’s hold').toBe(id);
  }
  await checkMoney(world, model);
}

async function checkMoney(world: World, model: Model): Promise<void> {
  const payments = await world.payments();
  expect(Object.fromEntries(payments.map(({ id, status }) => [id, status]))).toEqual(
    Object.fromEntries([...model.payments.values()].map(({ id, status }) => [id, status])),
  );
  for (const { id, status, refunds, paid, sameAmount } of payments) {
    expect({ id, refunds, sameAmount }).toEqual({ id, refunds: status === 'OWED' ? 1 : 0, sameAmount: true });
    if (status === 'APPLIED') expect(paid, `an order that ${id} paid`).toBe(1);
  }
}

/** What walks have come to, to see that they go everywhere. */
const reached = new Set<string>();

async function checkRest(world: World, model: Model): Promise<void> {
  expect(world.queue.messages).toEqual([]);
  for (const { id, status, atGate, mark } of model.all()) {
    expect(['PAID', 'EXPIRED', 'CANCELLED', 'REFUNDED'], `how ${id} ended`).toContain(status);
    expect({ atGate, mark }).toEqual({ atGate: status === 'PAID', mark: undefined });
  }
  const refunded = (await world.payments()).filter(({ status }) => status === 'OWED');
  for (const { refundStatus, reason } of refunded) {
    expect(refundStatus).toBe('SUCCEEDED');
    reached.add(`refund: ${reason ?? ''}`);
  }
  const amounts = refunded.filter(({ amount }) => amount > 0).map(({ refundId, amount }) => [refundId, amount]);
  expect(Object.fromEntries(world.provider.made)).toEqual(Object.fromEntries(amounts));
  expect([...model.payments.values()].filter(({ status }) => status === 'PARKED')).toEqual([]);
}

async function walk(steps: AnyStep[]): Promise<void> {
  const world = new World(system, gate);
  const model = new Model(4, 2);
  await putSale(world.stores, world.saleId, settingsOf(model));
  for (const step of steps) {
    if (step.name === 'press') reached.add(model.answer(step.user, step.qty));
    await take({ world, model }, step);
    await check(world, model);
    for (const { status } of model.payments.values()) reached.add(status);
  }
  await comeToRest({ world, model });
  await check(world, model);
  await checkRest(world, model);
  for (const { status = 'QUEUED' } of model.all()) reached.add(status);
}

/** Random walks per seed; more of them when looking for something. */
const WALKS = Number(process.env.WALKS ?? 25);
const ALWAYS = 20_261_131;
const steps = fc.array(anyStep, { minLength: 1, maxLength: 80, size: 'max' });

test(`random walks keep every rule (seed ${ALWAYS}, always the same)`, { timeout: WALKS * 10_000 }, async () => {
  await fc.assert(fc.asyncProperty(steps, walk), { seed: ALWAYS, numRuns: WALKS });
  expect([...reached].sort(), 'what the walks came to').toEqual([
    ...['APPLIED', 'CANCELLED', 'EXPIRED', 'OWED', 'PAID', 'PARKED', 'REFUNDED'],
    ...['dup', 'ok', 'paused', 'qty_over_limit'],
    ...['already_paid', 'amount_mismatch', 'by_shop', 'cancelled', 'expired', 'refunded', 'unknown_reservation'].map(
      (why) => `refund: ${why}`,
    ),
    'sold_out',
  ]);
});

const seed = Date.now() % 2 ** 31;
test(`random walks keep every rule (seed ${seed}, new each time)`, { timeout: WALKS * 10_000 }, async () => {
  console.log(`random walks with seed ${seed}`);
  await fc.assert(fc.asyncProperty(steps, walk), { seed, numRuns: WALKS });
});

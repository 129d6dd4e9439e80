/** What ends an order, at once and in every order: its units come back once, or stay sold. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PaymentEventType } from '../../src/domain/payment.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { reconcile } from '../../src/keeper/reconcile.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { cancelReservation, findReservation } from '../../src/operations/cancel.ts';
import { finish } from '../../src/operations/finish.ts';
import { putSale, SaleConflict } from '../../src/operations/sales.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { Probe, settings } from '../gate/probe.ts';
import {
  anotherGate,
  ask,
  checkBoth,
  openSale,
  passTime,
  saleSettings,
  startSystem,
  win,
  type System,
} from './system.ts';

let system: System;
let other: ReturnType<typeof anotherGate>;
beforeAll(async () => {
  system = await startSystem();
  other = anotherGate(system);
  await other.gate.check();
});
afterAll(async () => {
  other.close();
  await system.stop();
});

const BATCH = 50;
const OVERDUE = 601_000;

async function event(type: PaymentEventType, hold: Hold, paymentId: string = randomUUID()) {
  const { reservationId, amount, currency } = hold;
  const applied = await applyEvent(system.stores.pool, {
    eventId: randomUUID(),
    type,
    paymentId,
    reservationId,
    amount,
    currency,
  });
  await finish(system.stores, applied.ended);
  return applied;
}
const expire = async (hold: Hold) => {
  await passTime(system, [hold.reservationId], OVERDUE);
  await sweep(system.stores, BATCH);
};
const statusOf = async (hold: Hold) =>
  (await checkBoth(system, hold.saleId)).ledger.orders.get(hold.reservationId)?.status;

/** A winner whose order is recorded. */
async function order(saleId: string, user: string, qty = 1): Promise<Hold> {
  const hold = await win(system, saleId, user, qty);
  expect(await recordHolds(system.stores, [hold])).toEqual(['PENDING_PAYMENT']);
  return hold;
}

test('sweeper, cancel and cancelled payment at once on one order: its units come back once', async () => {
  const saleId = await openSale(system, { total: 10 });
  for (let round = 0; round < 40; round += 1) {
    const hold = await order(saleId, 'ann', 3);
    await passTime(system, [hold.reservationId], OVERDUE);
    await Promise.all([
      sweep(system.stores, BATCH),
      cancelReservation(system.stores, hold),
      event('payment.canceled', hold),
      sweep(system.stores, BATCH),
      cancelReservation(system.stores, hold),
    ]);
    const { gate, ledger } = await checkBoth(system, saleId);
    expect(['EXPIRED', 'CANCELLED']).toContain(ledger.orders.get(hold.reservationId)?.status);
    expect({ stock: gate.stock, held: gate.held, sold: ledger.sold }).toEqual({ stock: 10, held: 0, sold: 0 });
  }
});

describe('refund, cancel and expiry in every order', () => {
  const acts: Record<string, (hold: Hold, paymentId: string) => Promise<unknown>> = {
    pay: (hold, paymentId) => event('payment.succeeded', hold, paymentId),
    refund: (hold, paymentId) => event('refund.succeeded', hold, paymentId),
    cancel: (hold) => cancelReservation(system.stores, hold),
    expire,
  };
  const orders = permutations(Object.keys(acts)).map((order) => ({ order, text: order.join(', ') }));

  test.each(orders)('$text', async ({ order: names }) => {
    const saleId = await openSale(system, { total: 3 });
    const hold = await order(saleId, 'ann', 2);
    const paymentId = randomUUID();
    for (const name of names) {
      await acts[name]?.(hold, paymentId);
      const { gate, ledger } = await checkBoth(system, saleId);
      expect((gate.stock ?? NaN) + ledger.sold, 'units left and sold').toBe(ledger.total);
    }
    const first = names.find((name) => name !== 'refund');
    // Money that went back without us: nothing is sold again that may have been shipped.
    const ended = { pay: 'REFUNDED', cancel: 'CANCELLED', expire: 'EXPIRED' }[first ?? ''];
    expect(await statusOf(hold)).toBe(ended);
    expect((await new Probe(system.redis, saleId).read()).stock).toBe(ended === 'REFUNDED' ? 1 : 3);
  });
});

test('an order that has ended is never revived', async () => {
  const saleId = await openSale(system, { total: 1 });
  const hold = await order(saleId, 'ann');
  await expire(hold);
  expect(await recordHolds(system.stores, [hold, hold])).toEqual(['EXPIRED', 'EXPIRED']);
  expect((await event('payment.succeeded', hold)).outcome).toMatch(/^refund_owed: expired/);
  expect(await cancelReservation(system.stores, hold)).toMatchObject({ status: 'EXPIRED' });
  const revive = `update sale_orders set status = $2 where reservation_id = $1`;
  for (const status of ['PENDING_PAYMENT', 'PAID']) {
    await expect(system.stores.pool.query(revive, [hold.reservationId, status])).rejects.toThrow(/cannot become/);
  }
  const { ledger, gate } = await checkBoth(system, saleId);
  expect({ status: ledger.orders.get(hold.reservationId)?.status, stock: gate.stock }).toEqual({
    status: 'EXPIRED',
    stock: 1,
  });
});

test('a hold expires, the buyer wins again, the first one’s release comes twice and late: the second keeps its unit', async () => {
  const saleId = await openSale(system, { total: 1 });
  const first = await order(saleId, 'ann');
  await expire(first);
  const second = await order(saleId, 'ann');
  expect(second.reservationId).not.toBe(first.reservationId);
  const ended = { ...first, status: 'EXPIRED' as const };
  await Promise.all([finish(system.stores, [ended]), finish(system.stores, [ended, ended])]);
  await recordHolds(system.stores, [first]); // and the first message once more
  await sweep(system.stores, BATCH);
  const { gate, ledger } = await checkBoth(system, saleId);
  expect(gate.holds.get('ann')).toContain(second.reservationId);
  expect({ stock: gate.stock, held: gate.held, sold: ledger.sold }).toEqual({ stock: 0, held: 1, sold: 1 });
  expect(await ask(other.gate, saleId, 'bob')).toEqual({ outcome: 'sold_out' });
});

test('cancel while the message is still in the queue: CANCELLED stays, and the unit is sold once', async () => {
  const saleId = await openSale(system, { total: 1 });
  const hold = await win(system, saleId, 'ann');
  expect(await findReservation(system.stores, hold)).toMatchObject({ status: 'QUEUED' });
  expect(await cancelReservation(system.stores, hold)).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer' });
  const next = await win({ ...system, stores: { ...system.stores, gate: other.gate } }, saleId, 'bob');
  expect(await recordHolds(system.stores, [hold, next, hold])).toEqual(['CANCELLED', 'PENDING_PAYMENT', 'CANCELLED']);
  const { gate, ledger } = await checkBoth(system, saleId);
  expect({ stock: gate.stock, buyers: gate.buyers, sold: ledger.sold }).toEqual({ stock: 0, buyers: ['bob'], sold: 1 });
});

test('cancel and the order’s insert at the same moment, many rounds: CANCELLED, the unit back, nothing sold', async () => {
  const saleId = await openSale(system, { total: 2 });
  for (let round = 0; round < 100; round += 1) {
    const hold = await win({ ...system, stores: { ...system.stores, gate: other.gate } }, saleId, 'ann', 2);
    const both = [() => cancelReservation(system.stores, hold), () => recordHolds(system.stores, [hold])];
    await Promise.all((round % 2 ? both : both.reverse()).map((start) => start()));
    const { gate, ledger } = await checkBoth(system, saleId);
    expect(ledger.orders.get(hold.reservationId)).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer' });
    expect({ stock: gate.stock, sold: ledger.sold }).toEqual({ stock: 2, sold: 0 });
  }
});

test('total lowered and raised in mid-sale, holds outstanding: no winner is refused, below what is held is 409', async () => {
  const saleId = await openSale(system, { total: 30 });
  const statuses: unknown[] = [];
  let tooLow = 0;
  const buyer = async (n: number) => {
    for (let press = 0; press < 12; press += 1) {
      const answer = await ask(other.gate, saleId, `u${n}-${press}`, 1 + (n % 4));
      if (answer.outcome !== 'ok') continue;
      statuses.push(...(await recordHolds(system.stores, [answer.hold])));
      if (press % 3 === 0) await cancelReservation(system.stores, answer.hold);
    }
  };
  const admin = async (totals: number[]) => {
    for (const total of totals) {
      try {
        await putSale(system.stores, saleId, saleSettings({ total }));
      } catch (error) {
        if (!(error instanceof SaleConflict) || error.code !== 'total_too_low') throw error;
        tooLow += 1;
      }
    }
  };
  await Promise.all([
    ...Array.from({ length: 8 }, (_, n) => buyer(n)),
    admin([20, 40, 1, 25, 60, 10, 35, 2, 50]),
    admin([28, 8, 45, 3, 33, 70, 12]),
  ]);
  expect(statuses.length).toBeGreaterThan(0);
  expect(new Set(statuses)).toEqual(new Set(['PENDING_PAYMENT']));
  const { gate, ledger } = await checkBoth(system, saleId);
  expect({ total: gate.total, forfeited: gate.forfeited }).toEqual({ total: ledger.total, forfeited: 0 });
  await admin([0]);
  expect(tooLow).toBeGreaterThan(0);
  expect((await checkBoth(system, saleId)).gate.total).toBe(gate.total);
});

test('a total below what winners hold whose orders are on their way is refused, and none of them', async () => {
  const saleId = await openSale(system, { total: 10 });
  const holds: Hold[] = [];
  for (let n = 0; n < 8; n += 1) holds.push(await win(system, saleId, `u${n}`));
  const shrink = putSale(system.stores, saleId, saleSettings({ total: 7 }));
  await expect(shrink).rejects.toMatchObject({ code: 'total_too_low' });
  await putSale(system.stores, saleId, saleSettings({ total: 8 }));
  expect(new Set(await recordHolds(system.stores, holds))).toEqual(new Set(['PENDING_PAYMENT']));
  const { gate, ledger } = await checkBoth(system, saleId);
  expect({ total: ledger.total, sold: ledger.sold, stock: gate.stock }).toEqual({ total: 8, sold: 8, stock: 0 });
});

describe('a gate that is too generous, as after a failover', () => {
  test('no room in the ledger: a final, visible refusal; the hold is forfeited, the sums hold', async () => {
    const saleId = await openSale(system, { total: 1 });
    const probe = new Probe(system.redis, saleId);
    const first = await order(saleId, 'ann');
    await probe.configure({ ...settings({ settings: 7, total: 2 }) }, 'decided'); // at the gate alone
    const answer = await ask(other.gate, saleId, 'bob');
    if (answer.outcome !== 'ok') throw new Error(answer.outcome);
    expect(await recordHolds(system.stores, [answer.hold])).toEqual(['REJECTED']);
    expect(await findReservation(system.stores, answer.hold)).toMatchObject({ status: 'REJECTED', reason: 'no_room' });
    // Final: also when it comes again, and also when there is room by then.
    await cancelReservation(system.stores, first);
    expect(await recordHolds(system.stores, [answer.hold])).toEqual(['REJECTED']);
    expect((await event('payment.succeeded', answer.hold)).outcome).toBe('refund_owed: rejected');
    const { gate, ledger } = await checkBoth(system, saleId);
    expect({ forfeited: gate.forfeited, held: gate.held, stock: gate.stock, sold: ledger.sold }).toEqual({
      ...{ forfeited: 1, held: 0, stock: 1, sold: 0 },
    });
  });

  test('a buyer whose first hold was forgotten: refused with the order that they have, whose hold is adopted again', async () => {
    const saleId = await openSale(system, { total: 2 });
    const probe = new Probe(system.redis, saleId);
    const first = await order(saleId, 'ann');
    await probe.call('release', '', 'ann', first.reservationId); // forgotten
    const answer = await ask(other.gate, saleId, 'ann');
    if (answer.outcome !== 'ok') throw new Error(answer.outcome);
    expect(await recordHolds(system.stores, [answer.hold])).toEqual(['REJECTED']);
    const { rows } = await system.stores.pool.query(
      'select reason, live_reservation_id from sale_orders where reservation_id = $1',
      [answer.hold.reservationId],
    );
    expect(rows).toEqual([{ reason: 'duplicate_buyer', live_reservation_id: first.reservationId }]);
    expect((await checkBoth(system, saleId)).gate).toMatchObject({ forfeited: 1, held: 0, stock: 1 });
    const options = { batch: 10, lostGraceMs: 60_000, timeoutMs: 10_000 };
    expect(await reconcile(system.stores, saleId, options)).toMatchObject({ adopted: 1, settled: 0 });
    expect((await checkBoth(system, saleId)).gate).toMatchObject({ forfeited: 0, held: 1, stock: 1 });
    expect(await ask(other.gate, saleId, 'ann')).toMatchObject({
      ...{ outcome: 'dup', hold: { reservationId: first.reservationId } },
    });
  });

  test('many more winners than room: those who fit have their orders, each other one is told', async () => {
    const saleId = await openSale(system, { total: 10 });
    await new Probe(system.redis, saleId).configure(settings({ settings: 7, total: 40 }), 'decided');
    const answers = await Promise.all(
      Array.from({ length: 25 }, (_, n) => ask(other.gate, saleId, `u${n}`, 1 + (n % 2))),
    );
    const holds = answers.flatMap((answer) => (answer.outcome === 'ok' ? [answer.hold] : []));
    expect(holds).toHaveLength(25);
    const chunks = [holds.slice(0, 9), holds.slice(5, 17), holds.slice(13)]; // some come twice
    await Promise.all(chunks.map((chunk) => recordHolds(system.stores, chunk)));
    const { gate, ledger } = await checkBoth(system, saleId);
    expect(ledger.sold).toBe(10);
    expect(ledger.orders.size).toBe(25);
    for (const { status } of ledger.orders.values()) expect(['PENDING_PAYMENT', 'REJECTED']).toContain(status);
    expect(gate.held).toBe(10);
    expect(gate.forfeited).toBe(holds.reduce((sum, { qty }) => sum + qty, 0) - 10);
  });
});

function permutations<T>(items: T[]): T[][] {
  if (items.length < 2) return [items];
  return items.flatMap((first, n) => permutations(items.filter((_, k) => k !== n)).map((rest) => [first, ...rest]));
}

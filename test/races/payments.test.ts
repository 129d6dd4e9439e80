/** Money against everything else, at the same moment, many rounds. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PaymentEventType } from '../../src/domain/payment.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { applyEvent, settleParked } from '../../src/ledger/payments.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { finish } from '../../src/operations/finish.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { anotherGate, ask, checkBoth, openSale, passTime, startSystem, type System } from './system.ts';

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

const SIDE_BY_SIDE = 50;

async function event(type: PaymentEventType, hold: Hold, but: { eventId?: string; paymentId?: string } = {}) {
  const { reservationId, amount, currency } = hold;
  const ids = { eventId: randomUUID(), paymentId: `pay-${reservationId}`, ...but };
  const applied = await applyEvent(system.stores.pool, { ...ids, type, reservationId, amount, currency });
  await finish(system.stores, applied.ended);
  return applied;
}

/** A sale with this many winners, whose messages are on their way. */
async function winners(count: number): Promise<{ saleId: string; holds: Hold[] }> {
  const saleId = await openSale(system, { total: count });
  const answers = await Promise.all(Array.from({ length: count }, (_, n) => ask(other.gate, saleId, `u${n}`)));
  const holds = answers.flatMap((answer) => (answer.outcome === 'ok' ? [answer.hold] : []));
  expect(holds).toHaveLength(count);
  return { saleId, holds };
}

/** Does it for all, as many at once as fit: each round is a race of its own. */
async function rounds(holds: Hold[], race: (hold: Hold, n: number) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < holds.length; n += SIDE_BY_SIDE) {
    await Promise.all(holds.slice(n, n + SIDE_BY_SIDE).map((hold, k) => race(hold, n + k)));
  }
}

/** Both at the same moment, each first as often. */
const atOnce = (n: number, one: () => Promise<unknown>, two: () => Promise<unknown>) =>
  Promise.all((n % 2 ? [one, two] : [two, one]).map((start) => start()));

/** What became of the money of each reservation. */
async function money(saleId: string) {
  const { rows } = await system.stores.pool.query<{
    id: string;
    applied: number;
    owed: number;
    parked: number;
    refunds: number;
  }>(
    `select o.reservation_id as id, count(*) filter (where p.status = 'APPLIED')::int as applied,
       count(*) filter (where p.status = 'OWED')::int as owed, count(*) filter (where p.status = 'PARKED')::int as parked,
       count(r.refund_id)::int as refunds
     from sale_orders o left join payments p on p.reservation_id = o.reservation_id::text left join refunds r using (payment_id)
     where o.sale_id = $1 group by 1`,
    [saleId],
  );
  return new Map(rows.map(({ id, ...counts }) => [id, counts]));
}

const PAID = { applied: 1, owed: 0, parked: 0, refunds: 0 };
const GIVEN_BACK = { applied: 0, owed: 1, parked: 0, refunds: 1 };

/** Each order is PAID, holds its unit and owes nothing; or it has ended so, its unit is free and its money goes back. */
async function paidOrEnded(saleId: string, ended: string): Promise<Record<string, number>> {
  const { gate, ledger } = await checkBoth(system, saleId);
  const paidFor = await money(saleId);
  const count: Record<string, number> = { PAID: 0, [ended]: 0 };
  for (const [id, { status, userId }] of ledger.orders) {
    expect(['PAID', ended]).toContain(status);
    expect(paidFor.get(id), `${status} ${id}`).toEqual(status === 'PAID' ? PAID : GIVEN_BACK);
    expect(gate.holds.has(userId), `${status}, and holds`).toBe(status === 'PAID');
    count[status] = (count[status] ?? 0) + 1;
  }
  return count;
}

test(
  'sweep and payment in the same millisecond, 1,000 rounds: PAID, or EXPIRED with a refund',
  { timeout: 60_000 },
  async () => {
    const { saleId, holds } = await winners(1000);
    await recordHolds(system.stores, holds);
    for (let n = 0; n < holds.length; n += SIDE_BY_SIDE) {
      const chunk = holds.slice(n, n + SIDE_BY_SIDE);
      const [early, late, ...same] = chunk;
      if (!early || !late) throw new Error('a chunk is not empty');
      await passTime(
        system,
        chunk.map(({ reservationId }) => reservationId),
        601_000,
      );
      await event('payment.succeeded', early); // overdue, and not swept yet
      const pay = same.map((hold) => () => event('payment.succeeded', hold));
      const starts = [
        ...pay.slice(0, 24),
        () => sweep(system.stores, 7),
        ...pay.slice(24),
        () => sweep(system.stores, 5),
      ];
      await Promise.all(starts.map((start) => start()));
      await sweep(system.stores, SIDE_BY_SIDE);
      await event('payment.succeeded', late); // certainly too late
    }
    const { PAID: paid = 0, EXPIRED: expired = 0 } = await paidOrEnded(saleId, 'EXPIRED');
    expect(paid + expired).toBe(1000);
    expect(Math.min(paid, expired), 'each happened').toBeGreaterThanOrEqual(20);
  },
);

test('cancel and payment in the same millisecond, 300 rounds: PAID, or CANCELLED with a refund', async () => {
  const { saleId, holds } = await winners(300);
  await recordHolds(system.stores, holds);
  await rounds(holds, (hold, n) =>
    atOnce(
      n,
      () => event('payment.succeeded', hold),
      () => cancelReservation(system.stores, hold),
    ),
  );
  const { PAID: paid = 0, CANCELLED: cancelled = 0 } = await paidOrEnded(saleId, 'CANCELLED');
  expect(paid + cancelled).toBe(300);
});

test('the same event 20 times in parallel: one transition, an answer for each', async () => {
  const { saleId, holds } = await winners(10);
  await recordHolds(system.stores, holds);
  for (const hold of holds) {
    const eventId = randomUUID();
    const applied = await Promise.all(Array.from({ length: 20 }, () => event('payment.succeeded', hold, { eventId })));
    expect(applied.map(({ outcome }) => outcome).sort()).toEqual([
      'paid',
      ...Array.from({ length: 19 }, () => 'repeated'),
    ]);
  }
  expect(await paidOrEnded(saleId, 'nothing else')).toMatchObject({ PAID: 10 });
});

test('the same payment under 20 event ids in parallel: PAID once, no refund', async () => {
  const { saleId, holds } = await winners(10);
  await recordHolds(system.stores, holds);
  for (const hold of holds) {
    const applied = await Promise.all(Array.from({ length: 20 }, () => event('payment.succeeded', hold)));
    expect(applied.filter(({ outcome }) => outcome === 'paid')).toHaveLength(1);
    expect(applied.filter(({ outcome }) => outcome === 'known_payment')).toHaveLength(19);
  }
  expect(await paidOrEnded(saleId, 'nothing else')).toMatchObject({ PAID: 10 });
});

test('two payments of one order at once, 200 rounds: one pays it, the other goes back', async () => {
  const { saleId, holds } = await winners(200);
  await recordHolds(system.stores, holds);
  const pay = (hold: Hold) => () => event('payment.succeeded', hold, { paymentId: randomUUID() });
  await rounds(holds, (hold, n) => atOnce(n, pay(hold), pay(hold)));
  for (const counts of (await money(saleId)).values())
    expect(counts).toEqual({ applied: 1, owed: 1, parked: 0, refunds: 1 });
  await checkBoth(system, saleId);
});

test(
  'parked payment and order insert at the same moment, 1,000 rounds: PAID every round',
  { timeout: 60_000 },
  async () => {
    const { saleId, holds } = await winners(1000);
    await rounds(holds, (hold, n) =>
      atOnce(
        n,
        () => event('payment.succeeded', hold),
        () => recordHolds(system.stores, [hold]),
      ),
    );
    expect(await paidOrEnded(saleId, 'nothing else')).toMatchObject({ PAID: 1000 });
  },
);

test('parked cancellation and order insert at the same moment, 200 rounds: CANCELLED, and the unit back', async () => {
  const { saleId, holds } = await winners(200);
  await rounds(holds, (hold, n) =>
    atOnce(
      n,
      () => event('payment.canceled', hold),
      () => recordHolds(system.stores, [hold]),
    ),
  );
  const { gate, ledger } = await checkBoth(system, saleId);
  expect(new Set([...ledger.orders.values()].map(({ status }) => status))).toEqual(new Set(['CANCELLED']));
  expect({ stock: gate.stock, held: gate.held, sold: ledger.sold }).toEqual({ stock: 200, held: 0, sold: 0 });
});

test('worker, webhook and keeper all at a parked payment whose grace is over, 200 rounds: paid or given back, once', async () => {
  const { saleId, holds } = await winners(200);
  await rounds(holds, async (hold, n) => {
    await event('payment.succeeded', hold);
    await system.stores.pool.query(
      `update payments set received_at = received_at - interval '1 day' where reservation_id = $1`,
      [hold.reservationId],
    );
    await atOnce(
      n,
      () => recordHolds(system.stores, [hold]),
      () => settleParked(system.stores.pool, 60_000, 10),
    );
  });
  const { ledger } = await checkBoth(system, saleId);
  const paidFor = await money(saleId);
  for (const [id, { status }] of ledger.orders) {
    expect(['PAID', 'PENDING_PAYMENT']).toContain(status); // unpaid only where the money had been given back before
    expect(paidFor.get(id), `${status} ${id}`).toEqual(status === 'PAID' ? PAID : GIVEN_BACK);
  }
});

/** Payments against everything that happens at the same moment, and against processes that die in between. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { LedgerUnavailable, transaction, type Pool } from '../../src/ledger/db.ts';
import { expireDue, markReleased, record } from '../../src/ledger/orders.ts';
import { applyEvent, claimParked, settleParked } from '../../src/ledger/payments.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { finish } from '../../src/operations/finish.ts';
import { recordHolds } from '../../src/worker/record.ts';
import {
  books,
  changeSale,
  event,
  expectSound,
  madeUp,
  moveBack,
  newSale,
  openHouse,
  orderOf,
  PRICE,
  until,
  win,
  type House,
} from './house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const GRACE_MS = 60_000;
const paid = (hold: Hold, but = {}) => event(hold, 'payment.succeeded', but);
const pay = (hold: Hold, but = {}) => applyEvent(house.pool, paid(hold, but));

/** As the webhook route does it. */
async function report(given: Parameters<typeof applyEvent>[1]) {
  const applied = await applyEvent(house.pool, given);
  await finish(house.stores, applied.ended);
  return applied;
}

/** Rounds side by side, but not more at once than the pool serves in time. */
async function race<T>(rounds: T[], round: (item: T, n: number) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < rounds.length; n += 10) {
    await Promise.all(rounds.slice(n, n + 10).map((item, k) => round(item, n + k)));
  }
}

const winners = (saleId: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => win(house, saleId, `buyer-${n}`)));

/** How many orders of the sale came to which end: status, then what became of each payment. */
async function ends(saleId: string): Promise<Record<string, number>> {
  const { rows } = await house.db.query<{ end: string; n: number }>(
    `select concat_ws(' ', o.status, p.said) as end, count(*)::int as n
     from sale_orders o left join lateral (
       select string_agg(concat_ws(' ', p.status, r.reason), ' ' order by p.status, p.payment_id) as said
       from payments p left join refunds r using (payment_id) where p.reservation_id = o.reservation_id::text) p on true
     where sale_id = $1 group by 1 order by 1`,
    [saleId],
  );
  return Object.fromEntries(rows.map(({ end, n }) => [end, n]));
}
async function moneyOf(hold: Pick<Hold, 'reservationId'>) {
  const { rows } = await house.db.query<{ status: string; reason: string | null }>(
    'select p.status, r.reason from payments p left join refunds r using (payment_id) where reservation_id = $1 order by payment_id',
    [hold.reservationId],
  );
  return rows;
}

describe('at the same moment', { timeout: 90_000 }, () => {
  const ROUNDS = 1000;

  test('the same event 20 times in parallel: one transition, all are told that it is durable', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    await recordHolds(house.stores, [hold]);
    const same = paid(hold);
    const answers = await Promise.all(Array.from({ length: 20 }, () => applyEvent(house.pool, same)));
    expect(answers.filter(({ state }) => state === 'applied').map(({ outcome }) => outcome)).toEqual(['paid']);
    expect(answers.filter(({ outcome }) => outcome === 'repeated')).toHaveLength(19);
    expect(await moneyOf(hold)).toEqual([{ status: 'APPLIED', reason: null }]);
  });

  test('one payment under 20 event ids in parallel: paid once, nothing owed', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    await recordHolds(house.stores, [hold]);
    await Promise.all(Array.from({ length: 20 }, () => pay(hold)));
    expect(await moneyOf(hold)).toEqual([{ status: 'APPLIED', reason: null }]);
  });

  test('sweep and payment, 1,000 rounds: PAID, or EXPIRED with a refund; never PAID and released', async () => {
    const saleId = await newSale(house, { total: ROUNDS });
    const holds = await winners(saleId, ROUNDS);
    await recordHolds(house.stores, holds);
    // All are due at this moment; the sweeper comes from one side, the payers from the other.
    await house.db.query('begin; set local session_replication_role = replica');
    await house.db.query(
      `update sale_orders set reserved_at = now() - interval '1 h', expires_at = now() - interval '1 s' * split_part(user_id, '-', 2)::int
       where sale_id = $1`,
      [saleId],
    );
    await house.db.query('commit');
    let over = false;
    const sweeping = Promise.all([sweep(house.stores, 7), sweep(house.stores, 7)]).then(() => (over = true));
    await race(holds, (hold) => report(paid(hold)));
    await sweeping;
    expect(over).toBe(true);

    const found = await ends(saleId);
    expect(Object.keys(found).sort()).toEqual(['EXPIRED OWED expired', 'PAID APPLIED']);
    expect(await books(house, saleId)).toMatchObject({ sold: found['PAID APPLIED'], held: found['PAID APPLIED'] });
    const { rows } = await house.db.query<{ user_id: string }>(
      `select user_id from sale_orders where sale_id = $1 and status = 'PAID'`,
      [saleId],
    );
    const held = await house.redis.hkeys(`{sale:${saleId}}:holds`);
    expect(held.sort()).toEqual(rows.map(({ user_id }) => user_id).sort());
    // The gate's holds keep the times that were promised, and these orders' were moved: not for the audit.
    await house.redis.del(...(await house.redis.keys(`{sale:${saleId}}:*`)));
    await house.db.query(`update sales set state = 'closed' where sale_id = $1`, [saleId]);
  });

  test('a parked payment and its order, 1,000 rounds: PAID every time, without a keeper', async () => {
    const saleId = await newSale(house, { total: ROUNDS });
    const holds = await winners(saleId, ROUNDS);
    await race(holds, (hold, n) => {
      const one = () => report(paid(hold));
      const other = () => recordHolds(house.stores, [hold]);
      return Promise.all(n % 2 === 0 ? [one(), other()] : [other(), one()]);
    });
    expect(await ends(saleId)).toEqual({ 'PAID APPLIED': ROUNDS });
  });

  test('a parked cancellation and its order, 300 rounds: CANCELLED every time, each unit back once', async () => {
    const saleId = await newSale(house, { total: 300 });
    const holds = await winners(saleId, 300);
    await race(holds, (hold) =>
      Promise.all([recordHolds(house.stores, [hold]), report(event(hold, 'payment.canceled'))]),
    );
    expect(await ends(saleId)).toEqual({ CANCELLED: 300 });
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 300, held: 0, forfeited: 0 });
  });

  test('two payments for one order, 200 rounds: one pays, the other is owed back', async () => {
    const saleId = await newSale(house, { total: 200 });
    const holds = await winners(saleId, 200);
    await recordHolds(house.stores, holds);
    await race(holds, (hold) => Promise.all([pay(hold), pay(hold, { paymentId: `z-${hold.reservationId}` })]));
    expect(await ends(saleId)).toEqual({ 'PAID APPLIED OWED already_paid': 200 });
  });

  test('payment and the buyer who cancels, 300 rounds: PAID, or CANCELLED with a refund', async () => {
    const saleId = await newSale(house, { total: 300 });
    const holds = await winners(saleId, 300);
    await recordHolds(house.stores, holds);
    await race(holds, async (hold, n) => {
      const pair = [() => report(paid(hold)), () => cancelReservation(house.stores, hold)];
      await Promise.all((n % 2 === 0 ? pair : pair.reverse()).map((one) => one()));
    });
    const found = await ends(saleId);
    expect(Object.keys(found).filter((end) => !['CANCELLED OWED cancelled', 'PAID APPLIED'].includes(end))).toEqual([]);
    expect(await books(house, saleId)).toMatchObject({ held: found['PAID APPLIED'] ?? 0, forfeited: 0 });
  });

  test('sweeper, buyer and cancelled payment on one order, 200 rounds: one unit back, once', async () => {
    const saleId = await newSale(house, { total: 200 });
    const holds = await winners(saleId, 200);
    await recordHolds(house.stores, holds);
    for (let n = 0; n < holds.length; n += 10) {
      const some = holds.slice(n, n + 10);
      for (const hold of some) await moveBack(house, hold, 3_600_000);
      await race(some, (hold) =>
        Promise.all([
          sweep(house.stores, 50),
          cancelReservation(house.stores, hold),
          report(event(hold, 'payment.canceled')),
        ]),
      );
    }
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 200, held: 0, forfeited: 0 });
    const { rows } = await house.db.query(
      'select sum(delta)::int as net, count(*)::int as entries from ledger_entries where sale_id = $1',
      [saleId],
    );
    expect(rows).toEqual([{ net: 0, entries: 400 }]);
  });

  test('a payment given up on and its order, 200 rounds: paid, or owed back and still to be paid; never both', async () => {
    const saleId = await newSale(house, { total: 200 });
    const holds = await winners(saleId, 200);
    for (const hold of holds) await pay(hold);
    await race(holds, (hold) => Promise.all([record(house.pool, [hold]), settleParked(house.pool, -1000, 1000)]));
    await settleParked(house.pool, GRACE_MS, 1000);
    const found = await ends(saleId);
    const legal = ['PAID APPLIED', 'PENDING_PAYMENT OWED unknown_reservation'];
    expect(Object.keys(found).filter((end) => !legal.includes(end))).toEqual([]);
  });
});

/** The same pool, but a transaction on it stops before a statement until it is told to go on. */
function pausing(pool: Pool, before: string) {
  const [reached, goOn] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const connect = async () => {
    const client = await pool.connect();
    const query = async (statement: { name?: string }, ...rest: unknown[]) => {
      if (statement.name === before) {
        reached.resolve(undefined);
        await goOn.promise;
      }
      return (client.query.bind(client) as (...args: unknown[]) => Promise<unknown>)(statement, ...rest);
    };
    return { query, release: client.release.bind(client) };
  };
  const paused = { connect, query: pool.query.bind(pool) } as unknown as Pool;
  return { pool: paused, reached: reached.promise, goOn: goOn.resolve };
}

describe('money that comes before its order', () => {
  test('and the order with all its worker does, between the webhook’s look and its commit: the webhook looks again', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    const paused = pausing(house.pool, 'conclude-event');
    const paying = applyEvent(paused.pool, paid(hold));
    await paused.reached; // it has seen no order
    expect(await recordHolds(house.stores, [hold])).toEqual(['PENDING_PAYMENT']); // and the worker no money
    paused.goOn(undefined);
    expect(await paying).toMatchObject({ state: 'applied', outcome: 'paid' });
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PAID' });
  });

  test('all of it, before the order’s own commit: the worker looks again', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    const paused = pausing(house.pool, 'insert-orders');
    const recording = recordHolds({ ...house.stores, pool: paused.pool }, [hold]);
    await paused.reached;
    expect(await pay(hold)).toMatchObject({ state: 'parked' });
    paused.goOn(undefined);
    expect(await recording).toEqual(['PENDING_PAYMENT']);
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PAID' });
  });

  test('is kept, then pays it, also when worker and webhook died before they looked for each other', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    expect(await pay(hold)).toMatchObject({ state: 'parked' });
    await record(house.pool, [hold]); // the worker's transaction, and no more of the worker
    expect(await moneyOf(hold)).toEqual([{ status: 'PARKED', reason: null }]);
    await settleParked(house.pool, GRACE_MS, 100);
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PAID' });
  });

  test('is claimed once by whoever comes: worker, webhook and keepers at once', async () => {
    const holds = await winners(await newSale(house, { total: 50 }), 50);
    for (const hold of holds) await pay(hold);
    await record(house.pool, holds);
    const ids = holds.map(({ reservationId }) => reservationId);
    const claims = [
      claimParked(house.pool, ids),
      claimParked(house.pool, ids),
      settleParked(house.pool, GRACE_MS, 100),
    ];
    const settled = (await Promise.all(claims)).flat();
    expect(settled.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 50 }, () => 'paid'));
  });

  test('of two payments the first pays; then a cancellation that was parked comes too late', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    await report(event(hold, 'payment.canceled', { paymentId: 'given-up' }));
    await pay(hold, { paymentId: 'a-first' });
    await pay(hold, { paymentId: 'b-second' });
    await recordHolds(house.stores, [hold]);
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PAID' });
    expect(await moneyOf(hold)).toEqual([
      { status: 'APPLIED', reason: null },
      { status: 'OWED', reason: 'already_paid' },
    ]);
  });

  test('is owed back when the hold was cancelled before it became an order', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    await pay(hold);
    await cancelReservation(house.stores, hold);
    await settleParked(house.pool, GRACE_MS, 100);
    expect(await moneyOf(hold)).toEqual([{ status: 'OWED', reason: 'cancelled' }]);
  });

  test('waits for its grace, and is owed back after it when nobody claims it; with the cancellation beside it', async () => {
    const lost = madeUp(await newSale(house), 'ann');
    await pay(lost);
    await report(event(lost, 'payment.canceled', { paymentId: 'other' }));
    await settleParked(house.pool, GRACE_MS, 100);
    expect(await moneyOf(lost)).toEqual([{ status: 'PARKED', reason: null }]);
    for (const table of ['payments', 'payment_events']) {
      await house.db.query(
        `update ${table} set received_at = received_at - interval '61 s' where reservation_id = $1`,
        [lost.reservationId],
      );
    }
    await settleParked(house.pool, GRACE_MS, 100);
    expect(await moneyOf(lost)).toEqual([{ status: 'OWED', reason: 'unknown_reservation' }]);
    const { rows } = await house.db.query(
      `select outcome from payment_events where reservation_id = $1 and type = 'payment.canceled'`,
      [lost.reservationId],
    );
    expect(rows).toEqual([{ outcome: 'nobody_claimed_it' }]);
    // The message comes after all: an order like any other, to be paid anew.
    await recordHolds(house.stores, [lost]);
    await pay(lost, { paymentId: 'anew' });
    expect(await orderOf(house, lost)).toMatchObject({ status: 'PAID' });
    await house.gate.adopt(lost.saleId, [lost]);
  });
});

describe('money for what is no reservation', () => {
  test.each(['order 66', 'x'.repeat(255), '💶'.repeat(127), 'with\0nul', '\ud800', "'; drop table payments; --"])(
    'is stored and owed back: %j',
    async (reservationId) => {
      const given = { ...paid(madeUp('none', 'ann')), reservationId, paymentId: randomUUID() };
      expect(await applyEvent(house.pool, given)).toMatchObject({ outcome: 'refund_owed: unknown_reservation' });
      const { rows } = await house.db.query('select status, amount from refunds where payment_id = $1', [
        given.paymentId,
      ]);
      expect(rows).toEqual([{ status: 'PENDING', amount: String(PRICE) }]);
      expect(await applyEvent(house.pool, given)).toMatchObject({ outcome: 'repeated' });
    },
  );

  test('our own id in capitals is our own id', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    await recordHolds(house.stores, [hold]);
    await pay(hold, { reservationId: hold.reservationId.toUpperCase() });
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PAID' });
  });
});

describe('a process that is killed', () => {
  test('between remembering the event and applying it: the redelivery applies it', async () => {
    const hold = await win(house, await newSale(house), 'ann');
    await recordHolds(house.stores, [hold]);
    const given = paid(hold);
    // In the middle: the event is remembered, the order is waited for.
    await house.db.query('begin');
    await house.db.query('select 1 from sale_orders where reservation_id = $1 for update', [hold.reservationId]);
    const applying = applyEvent(house.pool, given).catch((error: unknown) => error);
    const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await house.db.query(waiting)).rows.length > 0);
    await house.db.query(`select pg_terminate_backend(pid) from (${waiting}) as w`);
    expect(await applying).toBeInstanceOf(LedgerUnavailable);
    await house.db.query('rollback');
    expect((await house.db.query('select from payment_events where event_id = $1', [given.eventId])).rows).toEqual([]);

    expect(await applyEvent(house.pool, given)).toMatchObject({ state: 'applied', outcome: 'paid' });
    expect(await moneyOf(hold)).toEqual([{ status: 'APPLIED', reason: null }]);
  });
});

describe('paid after its time', () => {
  test('when the unit is sold to somebody else: one refund, a state that says so, and the other keeps the unit', async () => {
    const saleId = await newSale(house, { total: 1 });
    const late = await win(house, saleId, 'ann');
    await recordHolds(house.stores, [late]);
    await moveBack(house, late, 3_600_000);
    await sweep(house.stores, 10);
    const next = await win(house, saleId, 'bob');
    await recordHolds(house.stores, [next]);
    for (const eventId of ['once', 'again']) {
      await applyEvent(house.pool, event(late, 'payment.succeeded', { eventId: `${late.reservationId} ${eventId}` }));
    }
    const { rows } = await house.db.query(`select reason from refunds where payment_id = 'pay-' || $1::text`, [
      late.reservationId,
    ]);
    expect(rows).toEqual([{ reason: 'expired' }]);
    expect(await orderOf(house, late)).toMatchObject({ status: 'EXPIRED' });
    await applyEvent(house.pool, event(next, 'payment.succeeded'));
    expect(await orderOf(house, next)).toMatchObject({ status: 'PAID' });
  });
});

describe('what was promised', () => {
  test('is what is paid: a price and a hold time changed in mid-sale touch new holds only', async () => {
    const saleId = await newSale(house, { holdSeconds: 600 });
    const before = await win(house, saleId, 'ann');
    await changeSale(house, saleId, { holdSeconds: 1, price: { amount: 2 * PRICE, currency: 'EUR' } });
    const after = await win(house, saleId, 'bob');
    await recordHolds(house.stores, [before, after]);
    expect([before.expiresAt - before.reservedAt, after.expiresAt - after.reservedAt]).toEqual([600_000, 1000]);

    await pay(before);
    await pay(after, { amount: PRICE }); // the old price is not what bob was promised
    expect(await orderOf(house, before)).toMatchObject({ status: 'PAID' });
    expect(await moneyOf(after)).toEqual([{ status: 'OWED', reason: 'amount_mismatch' }]);

    await until(async () => (await expireDue(house.pool, 10)).some(({ userId }) => userId === 'bob'));
    expect(await orderOf(house, before)).toMatchObject({ status: 'PAID' });
    await sweep(house.stores, 100);
  });

  test('paid in the last moment counts; a moment later it does not, and nobody revives it', async () => {
    const saleId = await newSale(house, { total: 2 });
    const [early, late] = [await win(house, saleId, 'ann'), await win(house, saleId, 'bob')];
    await recordHolds(house.stores, [early, late]);
    for (const hold of [early, late]) await moveBack(house, hold, 600_000);
    await pay(early); // its time is over, but nobody has ended it: the order was still there to be paid
    await sweep(house.stores, 100);
    await pay(late);
    await recordHolds(house.stores, [late]);
    expect(await ends(saleId)).toEqual({ 'EXPIRED OWED expired': 1, 'PAID APPLIED': 1 });
    expect(await books(house, saleId)).toEqual({ sold: 1, stock: 1, held: 1, forfeited: 0 });
  });
});

test('two who mark the same orders, in whatever order their plans read them', async () => {
  const saleId = await newSale(house, { total: 400 });
  const holds = Array.from({ length: 400 }, (_, n) => madeUp(saleId, `b-${n}`, { reservedAt: 1, expiresAt: 2 }));
  await record(house.pool, holds);
  await expireDue(house.pool, 400);
  const ids = holds.map(({ reservationId }) => reservationId);
  const planned = (settings: string) =>
    transaction(house.pool, async (client) => {
      await client.query(settings);
      await markReleased(client, ids);
    });
  for (let round = 0; round < 20; round += 1) {
    await house.db.query('update sale_orders set gate_released_at = null where sale_id = $1', [saleId]);
    await Promise.all([
      planned('set local enable_seqscan = off'), // by id
      planned('set local enable_indexscan = off; set local enable_bitmapscan = off'), // as they lie in the table
    ]);
  }
});

test('nobody ran into a deadlock: all take their locks in one order', async () => {
  await until(async () => {
    const { rows } = await house.db.query<{ n: string }>(
      `select xact_commit as n from pg_stat_database where datname = current_database()`,
    );
    return Number(rows[0]?.n) > 1000; // the figures have come that far
  });
  const { rows } = await house.db.query('select deadlocks from pg_stat_database where datname = current_database()');
  expect(rows).toEqual([{ deadlocks: '0' }]);
});

test('the audit finds everything sound that was left behind', async () => {
  await settleParked(house.pool, GRACE_MS, 1000);
  await sweep(house.stores, 100);
  await expectSound(house);
});

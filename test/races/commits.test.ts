/**
 * Webhook and worker at once, one of them stopped just before its commit while the other goes through: neither sees what
 * the other has not committed, so each must look again after its own. Timing alone hits this window too seldom.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PaymentEventType } from '../../src/domain/payment.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { finish } from '../../src/operations/finish.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { checkBoth, openSale, startSystem, win, type System } from './system.ts';
import { until } from './until.ts';

/** Where a transaction is made to wait: the number of an advisory lock that the test holds meanwhile. */
const DOORS = { webhook: 1, worker: 2 };

let system: System;
beforeAll(async () => {
  system = await startSystem();
  await system.stores.pool.query(`
    create function wait_at_door() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(tg_argv[0]::bigint); return new; end $$;
    create trigger webhook_waits before update on payment_events
      for each row execute function wait_at_door(${DOORS.webhook});
    create trigger worker_waits before insert on ledger_entries
      for each row execute function wait_at_door(${DOORS.worker})`);
});
afterAll(() => system.stop());

/** Runs `held` up to its door, then `free` to its end, then lets `held` go on. */
async function around(door: number, held: () => Promise<unknown>, free: () => Promise<unknown>): Promise<void> {
  const keeper = await system.stores.pool.connect();
  try {
    await keeper.query('select pg_advisory_lock($1)', [door]);
    const heldBack = held();
    await until('it waits at the door', async () => {
      const waiting = `select from pg_locks where locktype = 'advisory' and objid = $1 and not granted`;
      return (await keeper.query(waiting, [door])).rowCount === 1;
    });
    await free();
    await keeper.query('select pg_advisory_unlock($1)', [door]);
    await heldBack;
  } finally {
    keeper.release();
  }
}

async function event(type: PaymentEventType, { reservationId, amount, currency }: Hold) {
  const ids = { eventId: randomUUID(), paymentId: randomUUID() };
  const applied = await applyEvent(system.stores.pool, { ...ids, type, reservationId, amount, currency });
  await finish(system.stores, applied.ended);
}

describe.each(['webhook', 'worker'] as const)('the %s commits last', (last) => {
  test.each([
    ['payment.succeeded', 'PAID', { held: 1, stock: 0 }],
    ['payment.canceled', 'CANCELLED', { held: 0, stock: 1 }],
  ] as const)('%s: %s', async (type, status, units) => {
    const saleId = await openSale(system, { total: 1 });
    const hold = await win(system, saleId, 'ann');
    const webhook = () => event(type, hold);
    const worker = () => recordHolds(system.stores, [hold]);
    await (last === 'webhook' ? around(DOORS.webhook, webhook, worker) : around(DOORS.worker, worker, webhook));
    const { gate, ledger } = await checkBoth(system, saleId);
    expect(ledger.orders.get(hold.reservationId)?.status).toBe(status);
    expect(gate).toMatchObject(units);
    const { rows } = await system.stores.pool.query(
      `select (select count(*)::int from payments where reservation_id = $1 and status = 'PARKED') as parked,
              (select count(*)::int from payment_events where reservation_id = $1 and state = 'parked') as waiting,
              (select count(*)::int from refunds join payments using (payment_id) where reservation_id = $1) as refunds`,
      [hold.reservationId],
    );
    expect(rows).toEqual([{ parked: 0, waiting: 0, refunds: 0 }]);
  });
});

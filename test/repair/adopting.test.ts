/** Adopting what has just expired: the gate must never get a hold of an order that has ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { reconcile } from '../../src/keeper/reconcile.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { record } from '../../src/ledger/orders.ts';
import { keeperOptions } from '../../src/wiring.ts';
import { arrows } from './arrows.ts';
import * as h from './house.ts';

let house: h.House;
beforeAll(async () => {
  house = await h.openHouse();
});
afterAll(async () => {
  expect(await h.rejected(house)).toEqual([]);
  await h.expectSettled(house);
  await h.closeHouse(house);
});

const BATCH = 100;
const pass = (at: h.House, saleId: string) => reconcile(at.stores, saleId, keeperOptions(house.config).reconcile);

/** A live order whose time is over and whose hold the gate has forgotten: adopted and swept in the same moment. */
async function forgotten(saleId: string, userId: string): Promise<Hold> {
  const now = Date.now();
  const hold = h.madeUp(saleId, userId, { reservedAt: now - 600_000, expiresAt: now - 1 });
  await record(house.pool, [hold]);
  return hold;
}

/** Ended, marked as given back, and not held: nobody would look for it again. */
async function expectGone(hold: Hold): Promise<void> {
  expect(await h.orderOf(house, hold)).toMatchObject({ status: 'EXPIRED', marked: true });
  expect(await house.gate.hold(hold.saleId, hold.userId), 'the hold of a finished order').toBeUndefined();
}

describe(arrows.adoptedTooLate.when, () => {
  test('it expires after the keeper has seen it live, and before it asks the gate: not adopted', async () => {
    const saleId = await h.newSale(house);
    const hold = await forgotten(saleId, 'ann');
    const during = h.withGate(house, {
      holdsOf: async (sale, users) => {
        const held = await house.gate.holdsOf(sale, users);
        expect(await sweep(house.stores, BATCH)).toMatchObject({ expired: 1, waiting: 0 });
        return held;
      },
    });
    expect(await pass(during, saleId)).toMatchObject({ adopted: 0, blocked: 0 });
    await expectGone(hold);
  });

  test('it is due while the gate adopts it: the sweep waits for that, and then releases it', async () => {
    const saleId = await h.newSale(house);
    const hold = await forgotten(saleId, 'ann');
    let sweeping: Promise<unknown> = Promise.resolve();
    const during = h.withGate(house, {
      adopt: async (...args) => {
        let swept = false;
        sweeping = sweep(house.stores, BATCH).finally(() => (swept = true));
        await h.until(async () => swept || (await someoneWaitsForALock()));
        return house.gate.adopt(...args);
      },
    });
    expect(await pass(during, saleId)).toMatchObject({ adopted: 1 });
    await sweeping;
    await expectGone(hold);
  });

  test('100 rounds at a barrier', async () => {
    const saleId = await h.newSale(house, { total: 200 });
    const adopted = [];
    for (let round = 0; round < 100; round += 1) {
      const hold = await forgotten(saleId, `buyer-${round}`);
      const delay = Math.random() * 8;
      const [done] = await Promise.all([
        pass(house, saleId),
        sleep(delay).then(() => sweep(house.stores, BATCH)),
        sleep(delay / 2).then(() => sweep(house.stores, BATCH)),
      ]);
      adopted.push(done.adopted);
      await sweep(house.stores, BATCH);
      await expectGone(hold);
    }
    expect(new Set(adopted), 'sometimes one was first, sometimes the other').toEqual(new Set([0, 1]));
    expect(await h.books(house, saleId)).toMatchObject({ stock: 200, held: 0, sold: 0 });
  });
});

async function someoneWaitsForALock(): Promise<boolean> {
  const { rowCount } = await house.db.query(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return (rowCount ?? 0) > 0;
}

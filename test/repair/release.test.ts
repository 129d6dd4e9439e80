/** Between the end of an order and the gate: units come back once, also when whoever gives them back dies, or cannot. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expireDue } from '../../src/ledger/orders.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
import { sweep } from '../../src/keeper/sweep.ts';
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

/** A sale whose one order has expired in the ledger, while the gate still holds it. */
async function expired() {
  const saleId = await h.newSale(house, { total: 3 });
  const hold = await h.winOrder(house, saleId, 'ann', 2);
  await h.moveBack(house, hold, 700_000);
  expect(await expireDue(house.pool, BATCH)).toHaveLength(1);
  expect(await h.books(house, saleId)).toMatchObject({ sold: 0, held: 2, stock: 1 });
  return { saleId, hold };
}

const isMarked = async (hold: { reservationId: string }) => (await h.orderOf(house, hold))?.marked;

describe(arrows.sweeperBeforeRelease.when, () => {
  test('the next sweep releases it and marks it; one after that does nothing', async () => {
    const { saleId, hold } = await expired();
    expect(await sweep(house.stores, BATCH)).toEqual({ expired: 0, released: 1, forfeited: 0, waiting: 0 });
    expect(await h.books(house, saleId)).toMatchObject({ held: 0, stock: 3 });
    expect(await isMarked(hold)).toBe(true);
    expect(await sweep(house.stores, BATCH)).toEqual({ expired: 0, released: 0, forfeited: 0, waiting: 0 });
  });

  test('died between the release and the mark: the units are not given back twice', async () => {
    const { saleId, hold } = await expired();
    await house.gate.release(saleId, [hold]);
    const again = await h.winOrder(house, saleId, 'ann', 3);
    expect(await sweep(house.stores, BATCH)).toMatchObject({ released: 0, waiting: 0 });
    expect(await isMarked(hold)).toBe(true);
    expect(await h.books(house, saleId)).toMatchObject({ held: 3, stock: 0, sold: 3 });
    expect(await house.gate.hold(saleId, 'ann')).toMatchObject({ reservationId: again.reservationId });
  });

  test('a gate that is lost, or loading, leaves it waiting; what is waiting is told', async () => {
    const { saleId, hold } = await expired();
    await house.redis.del(...gateKeys(saleId));
    expect(await sweep(house.stores, BATCH)).toMatchObject({ waiting: 1 });
    expect(await isMarked(hold), 'not loaded').toBe(false);
    const token = await tokenFor(house.pool, saleId);
    await house.gate.begin(saleId, token);
    await house.gate.chunk(saleId, [hold], token); // read before it expired
    expect(await sweep(house.stores, BATCH)).toMatchObject({ waiting: 1 });
    expect(await isMarked(hold), 'loading').toBe(false);
    await openGate(house.stores, saleId, await tokenFor(house.pool, saleId));
    expect(await sweep(house.stores, BATCH)).toMatchObject({ waiting: 0 });
    expect(await isMarked(hold)).toBe(true);
    expect(await h.books(house, saleId)).toMatchObject({ held: 0, stock: 3 });
  });

  test('loaded while it was ending: the hold that the loader had read is released all the same', async () => {
    const saleId = await h.newSale(house, { total: 3 });
    const hold = await h.winOrder(house, saleId, 'ann', 2);
    await h.moveBack(house, hold, 700_000);
    await house.redis.del(...gateKeys(saleId));
    const during = h.withGate(house, {
      chunk: async (sale, holds, token) => {
        const added = await house.gate.chunk(sale, holds, token);
        expect(await sweep(house.stores, BATCH)).toMatchObject({ expired: 1, released: 0, waiting: 1 });
        return added;
      },
    });
    await openGate(during.stores, saleId, await tokenFor(house.pool, saleId));
    expect(await h.books(house, saleId), 'as the loader had read it').toMatchObject({ sold: 0, held: 2, stock: 1 });
    await sweep(house.stores, BATCH);
    expect(await h.books(house, saleId)).toMatchObject({ held: 0, stock: 3 });
    expect(await isMarked(hold)).toBe(true);
  });
});

/** Redis fails over to a replica that is behind: the gate is as it was a while ago, and does not know it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setState } from '../../src/operations/sales.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { arrows } from './arrows.ts';
import * as h from './house.ts';

let house: h.House;
beforeAll(async () => {
  house = await h.openHouse();
});
afterAll(async () => {
  await h.expectSettled(house);
  await h.closeHouse(house);
});

const status = async (hold: { reservationId: string }) => (await h.orderOf(house, hold))?.status;
const heldBy = async (saleId: string, userId: string) => (await house.gate.hold(saleId, userId))?.reservationId;

describe(arrows.failedOver.when, () => {
  test('live orders without holds are adopted: paid and unpaid, and their buyers are told so again', async () => {
    const saleId = await h.newSale(house, { total: 5 });
    const goBack = await h.remember(house, saleId);
    const [paid, unpaid] = [await h.winOrder(house, saleId, 'paid', 2), await h.winOrder(house, saleId, 'unpaid')];
    await h.pay(house, paid);
    await goBack();
    expect(await h.books(house, saleId)).toMatchObject({ stock: 5, held: 0, sold: 3 });
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 2, held: 3, forfeited: 0, sold: 3 });
    expect(await h.press(house, saleId, 'paid')).toMatchObject({ word: 'dup', id: paid.reservationId });
    expect(await h.press(house, saleId, 'unpaid')).toMatchObject({ word: 'dup', id: unpaid.reservationId });
  });

  test('released holds that are back again are dropped, whatever the ledger’s marks say', async () => {
    const saleId = await h.newSale(house, { total: 5 });
    const [expired, cancelled] = [await h.winOrder(house, saleId, 'late', 2), await h.winOrder(house, saleId, 'gone')];
    const goBack = await h.remember(house, saleId);
    await h.moveBack(house, expired, 700_000);
    await cancelReservation(house.stores, cancelled);
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 5, held: 0 });
    for (const hold of [expired, cancelled]) expect(await h.orderOf(house, hold)).toMatchObject({ marked: true });
    await goBack();
    expect(await h.books(house, saleId)).toMatchObject({ stock: 2, held: 3, sold: 0 });
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 5, held: 0, forfeited: 0, sold: 0 });
  });

  test('a gate too generous: the ledger refuses the surplus, whose units go to whom they belong', async () => {
    const saleId = await h.newSale(house, { total: 2 });
    const goBack = await h.remember(house, saleId);
    const owners = [await h.winOrder(house, saleId, 'a'), await h.winOrder(house, saleId, 'b')];
    await goBack();
    const surplus = [await h.winQueued(house, saleId, 'c'), await h.winQueued(house, saleId, 'd')];
    await h.drain(house);
    for (const hold of surplus) {
      expect(await h.orderOf(house, hold)).toMatchObject({ status: 'REJECTED', reason: 'no_room', marked: true });
    }
    expect(await h.books(house, saleId), 'nobody else can win them').toMatchObject({ stock: 0, held: 0, forfeited: 2 });
    expect(await h.press(house, saleId, 'e')).toMatchObject({ word: 'sold_out' });
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 0, held: 2, forfeited: 0, sold: 2 });
    for (const hold of owners) expect(await status(hold)).toBe('PENDING_PAYMENT');
    const asked = await house.app.inject({
      url: `/sales/${saleId}/reservations/${surplus[0]?.reservationId}?userId=c`,
    });
    expect(asked.json(), 'the refused are told').toMatchObject({ status: 'REJECTED', reason: 'no_room' });
  });

  test('a forgotten buyer wins a second time: refused as a duplicate, the first order keeps its unit', async () => {
    const saleId = await h.newSale(house, { total: 3 });
    const goBack = await h.remember(house, saleId);
    const first = await h.winOrder(house, saleId, 'ann');
    await goBack();
    const second = await h.winQueued(house, saleId, 'ann', 2);
    await h.keep(house); // the buyer has another hold: the first one cannot be adopted yet
    expect(await heldBy(saleId, 'ann')).toBe(second.reservationId);
    await h.drain(house);
    expect(await h.orderOf(house, second)).toMatchObject({
      status: 'REJECTED',
      reason: 'duplicate_buyer',
      live: first.reservationId,
    });
    expect(await h.books(house, saleId)).toMatchObject({ held: 0, forfeited: 2 });
    await h.keep(house);
    expect(await heldBy(saleId, 'ann')).toBe(first.reservationId);
    expect(await h.books(house, saleId), 'one is adopted, the other is still forfeited').toMatchObject({
      ...{ stock: 1, held: 1, forfeited: 1, sold: 1 },
    });
    await h.keep(house);
    expect(await h.books(house, saleId), 'a pass that found nothing missing settles it').toMatchObject({
      ...{ stock: 2, held: 1, forfeited: 0, sold: 1 },
    });
  });

  test('nothing is settled while a live order lacks its hold, however often the keeper looks', async () => {
    const saleId = await h.newSale(house, { total: 2 });
    const goBack = await h.remember(house, saleId);
    const [first, gone] = [await h.winOrder(house, saleId, 'ann'), await h.winOrder(house, saleId, 'bob')];
    await goBack();
    const surplus = await h.winOrder(house, saleId, 'eve');
    expect(await status(surplus)).toBe('REJECTED');
    await h.cancel(house, gone);
    const again = await h.win(house, saleId, 'ann'); // stands in the way of her first one
    for (let n = 0; n < 2; n += 1) {
      await h.keep(house);
      expect(await h.books(house, saleId)).toMatchObject({ stock: 0, held: 1, forfeited: 1, sold: 1 });
    }
    await h.send(house, again);
    await h.drain(house);
    expect(await status(again)).toBe('REJECTED');
    for (let n = 0; n < 2; n += 1) await h.keep(house);
    expect(await heldBy(saleId, 'ann')).toBe(first.reservationId);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 1, held: 1, forfeited: 0, sold: 1 });
  });

  test('a forgotten pause, price and limit are applied again; an older version never is', async () => {
    const saleId = await h.newSale(house);
    const goBack = await h.remember(house, saleId);
    await h.changeSale(house, saleId, { price: { amount: 700, currency: 'EUR' }, maxPerReservation: 2 });
    await setState(house.stores, saleId, 'paused');
    await goBack();
    expect(await h.press(house, saleId, 'early'), 'the gate sells what is paused').toMatchObject({ word: 'ok' });
    await h.keep(house);
    expect(await h.press(house, saleId, 'ann')).toMatchObject({ word: 'paused' });
    await setState(house.stores, saleId, 'open');
    expect(await h.press(house, saleId, 'ann', 3)).toMatchObject({ word: 'qty_over_limit' });
    expect(await h.win(house, saleId, 'ann', 2)).toMatchObject({ amount: 1400 });
    await h.drain(house);
    await h.resendMarked(house, saleId);
  });

  test('a forgotten shrink is applied again: the stock goes below zero, buyers see none, it ends exact', async () => {
    const saleId = await h.newSale(house, { total: 4 });
    const goBack = await h.remember(house, saleId);
    for (const buyer of ['a', 'b']) await h.winOrder(house, saleId, buyer);
    await h.changeSale(house, saleId, { total: 2 });
    await goBack();
    const surplus = [await h.winQueued(house, saleId, 'c', 3)];
    expect(await h.books(house, saleId)).toMatchObject({ stock: 1, held: 3 });
    await h.keep(house);
    expect(await h.books(house, saleId), 'of 2 units, 5 are promised').toMatchObject({ stock: -3, held: 5, sold: 2 });
    expect(await h.press(house, saleId, 'e')).toMatchObject({ word: 'sold_out' });
    await house.directory.refresh();
    const page = await house.app.inject({ url: `/sales/${saleId}` });
    expect(page.json()).toMatchObject({ unitsLeft: 0, total: 2 });
    await h.drain(house);
    for (const hold of surplus) expect(await status(hold)).toBe('REJECTED');
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 0, held: 2, forfeited: 0, sold: 2 });
  });

  test('a change that reached the gate and not the ledger: the ledger’s settings are the newest again', async () => {
    const saleId = await h.newSale(house, { total: 4 });
    const figures = await house.gate.figures(saleId);
    const sale = await h.saleOf(house, saleId);
    await house.gate.configure({ ...sale, total: 1, settings: (figures?.settings ?? 0) + 1 }, 'ask');
    await h.keep(house);
    expect(await house.gate.figures(saleId)).toMatchObject({ total: 4, stock: 4 });
    expect((await h.saleOf(house, saleId)).settings).toBe((figures?.settings ?? 0) + 2);
  });
});

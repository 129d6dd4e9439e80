/** Between the gate and the ledger: what is left when the API, the queue or the worker dies there, and who repairs it. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expireDue, record } from '../../src/ledger/orders.ts';
import { newMemory } from '../../src/keeper/keeper.ts';
import { reconcile } from '../../src/keeper/reconcile.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { keeperOptions } from '../../src/wiring.ts';
import { arrows } from './arrows.ts';
import * as h from './house.ts';
import { SLACK_MS } from './fire.ts';
import { lineTo, through } from './proxy.ts';

let house: h.House;
beforeAll(async () => {
  house = await h.openHouse();
});
afterAll(async () => {
  await h.expectSettled(house);
  await h.closeHouse(house);
});

const passOptions = () => keeperOptions(house.config).reconcile;
const status = async (hold: { reservationId: string }) => (await h.orderOf(house, hold))?.status;
/** In a run in which the gate loses nothing no winner is refused. */
const nobodyRefused = async () => expect(await h.rejected(house)).toEqual([]);

describe(arrows.beforeTheQueue.when, () => {
  test('the buyer presses again: the hold is sent, and only then the buyer is told', async () => {
    const saleId = await h.newSale(house);
    const hold = await h.win(house, saleId, 'ann');
    expect(await h.marked(house, saleId)).toEqual(['ann']);
    expect(await h.press(house, saleId, 'ann')).toEqual({ status: 200, word: 'dup', id: hold.reservationId });
    expect(await h.messages(house)).toBe(1);
    await h.drain(house);
    expect(await status(hold)).toBe('PENDING_PAYMENT');
    expect(await h.marked(house, saleId)).toEqual([]);
    await nobodyRefused();
  });

  test('nobody comes again: the keeper sends it after the grace, once per grace', async () => {
    const saleId = await h.newSale(house);
    const hold = await h.win(house, saleId, 'ann');
    await h.keep(house);
    expect(await h.messages(house), 'sent within the grace, in which its own request may still send it').toBe(0);
    await h.age(house, hold, house.config.UNQUEUED_GRACE_MS);
    // News that the queue has it does not reach the gate: the mark stays, and yet it is not sent twice in one grace.
    const deaf = h.withGate(house, { queued: () => Promise.resolve() });
    await h.keep(deaf);
    await h.keep(deaf);
    expect(await h.messages(house)).toBe(1);
    await house.gate.queued(saleId, hold);
    await h.drain(house);
    expect(await status(hold)).toBe('PENDING_PAYMENT');
    await nobodyRefused();
  });
});

describe(arrows.queueAnswersLate.when, () => {
  test('the queue has it and its answer is lost: 503, the same hold for who presses again, one order', async () => {
    const own = await h.openHouse(); // a queue of its own: what was sent may arrive late
    const saleId = await h.newSale(own);
    const line = await lineTo(Number(new URL(inject('services').env.SQS_ENDPOINT ?? '').port));
    const slow = await h.anotherApi(own, {
      SQS_ENDPOINT: through(line, inject('services').env.SQS_ENDPOINT ?? ''),
      SQS_QUEUE_URL: through(line, own.queueUrl),
    });
    line.mode = 'mute';
    const began = performance.now();
    expect(await h.press(slow, saleId, 'ann')).toMatchObject({ status: 503, word: 'queue_unavailable' });
    expect(performance.now() - began).toBeLessThan(own.config.REQUEST_DEADLINE_MS + SLACK_MS);
    expect(await h.marked(own, saleId), 'the hold is kept, and marked').toEqual(['ann']);
    line.mode = 'pass';
    line.cut();
    const again = await h.press(slow, saleId, 'ann');
    expect(again).toMatchObject({ status: 200, word: 'dup' });
    await slow.close();
    await h.until(async () => (await h.messages(own)) >= 2); // the message of each press
    await h.drain(own);
    expect(await h.orderOf(own, { reservationId: again.id ?? '' })).toMatchObject({ status: 'PENDING_PAYMENT' });
    expect(await h.books(own, saleId)).toMatchObject({ sold: 1, held: 1 });
    expect(await h.rejected(own)).toEqual([]);
    await h.expectSettled(own);
    await h.closeHouse(own);
  });
});

describe(arrows.queueLosesEverything.when, () => {
  test('the full pass finds unmarked holds without orders, and sends each again, once per grace', async () => {
    const saleId = await h.newSale(house);
    const old = await h.winQueued(house, saleId, 'ann');
    const young = await h.winQueued(house, saleId, 'young');
    await h.loseQueue(house);
    await h.age(house, old, house.config.LOST_GRACE_MS);
    const memory = newMemory();
    await h.keep(house, memory);
    expect(await h.messages(house), 'the one that is old enough to be taken for lost').toBe(1);
    const { resentAt } = memory.walks.get(saleId) ?? {};
    expect(resentAt?.size).toBe(1);
    await reconcile(house.stores, saleId, passOptions(), {
      resentAt: resentAt ?? new Map<string, number>(),
      tokenOf: () => '',
    });
    expect(await h.messages(house), 'within the grace nothing is sent twice').toBe(1);
    await h.drain(house);
    expect(await status(old)).toBe('PENDING_PAYMENT');
    await h.age(house, young, house.config.LOST_GRACE_MS);
    await h.keep(house, memory);
    await h.drain(house);
    expect(await status(young)).toBe('PENDING_PAYMENT');
    await nobodyRefused();
  });
});

describe(arrows.workerBeforeAcknowledgement.when, () => {
  test('the redelivery finds the id known: one order, sold once, acknowledged', async () => {
    const saleId = await h.newSale(house);
    const hold = await h.winQueued(house, saleId, 'ann', 2);
    await record(house.pool, [hold]); // and died before it could acknowledge
    expect(await h.messages(house)).toBe(1);
    await h.drain(house);
    expect(await status(hold)).toBe('PENDING_PAYMENT');
    expect(await h.books(house, saleId)).toMatchObject({ sold: 2, held: 2 });
    await nobodyRefused();
  });

  test('a redelivery so late that its order ended and its buyer won again takes nothing from the new hold', async () => {
    const saleId = await h.newSale(house);
    const first = await h.winOrder(house, saleId, 'ann');
    await h.moveBack(house, first, 700_000);
    await h.keep(house);
    expect(await h.orderOf(house, first)).toMatchObject({ status: 'EXPIRED', marked: true });
    const second = await h.winOrder(house, saleId, 'ann', 2);
    await h.send(house, first);
    await h.drain(house);
    expect(await status(first)).toBe('EXPIRED');
    expect(await status(second)).toBe('PENDING_PAYMENT');
    expect(await h.books(house, saleId)).toMatchObject({ sold: 2, held: 2, forfeited: 0 });
  });

  test('a redelivery acts on the status that its order has by now', async () => {
    const saleId = await h.newSale(house);
    const hold = await h.winOrder(house, saleId, 'ann');
    await h.moveBack(house, hold, 700_000);
    await expireDue(house.pool, 10); // and died before the release
    await h.send(house, hold);
    await h.drain(house);
    expect(await h.orderOf(house, hold)).toMatchObject({ status: 'EXPIRED', marked: true });
    expect(await h.books(house, saleId)).toMatchObject({ sold: 0, held: 0, stock: 10 });
  });
});

describe(arrows.workerBeforeForfeit.when, () => {
  /** A gate that sold one unit twice, since it forgot the first buyer; the ledger has refused the second, not yet the gate. */
  async function refused(markedAsDone: boolean) {
    const saleId = await h.newSale(house, { total: 1 });
    const goBack = await h.remember(house, saleId);
    const first = await h.winOrder(house, saleId, 'first');
    await goBack();
    const surplus = await h.win(house, saleId, 'surplus');
    await house.gate.queued(saleId, surplus);
    await record(house.pool, [surplus]);
    expect(await h.orderOf(house, surplus)).toMatchObject({ status: 'REJECTED', reason: 'no_room', marked: false });
    if (markedAsDone) {
      await house.db.query('update sale_orders set gate_released_at = now() where reservation_id = $1', [
        surplus.reservationId,
      ]);
    }
    expect(await h.books(house, saleId)).toMatchObject({ held: 1, forfeited: 0 });
    return { saleId, first, surplus };
  }

  test('the sweep forfeits what is not marked as done', async () => {
    const { saleId } = await refused(false);
    expect(await sweep(house.stores, 100)).toMatchObject({ forfeited: 1, waiting: 0 });
    expect(await h.books(house, saleId), 'no unit was given to the stock').toMatchObject({
      stock: 0,
      held: 0,
      forfeited: 1,
    });
  });

  test('the full pass forfeits it whatever the mark says, and gives the unit to whom it belongs', async () => {
    const { saleId, first } = await refused(true);
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 0, held: 1, forfeited: 0, sold: 1 });
    expect(await house.gate.hold(saleId, 'first')).toMatchObject({ reservationId: first.reservationId });
  });
});

describe(arrows.gateAndQueueLose.when, () => {
  test('no trace: 404 for who asks, the unit is free, the buyer may win again', async () => {
    const saleId = await h.newSale(house);
    const goBack = await h.remember(house, saleId);
    const hold = await h.winQueued(house, saleId, 'ann');
    await goBack();
    await h.loseQueue(house);
    await h.keep(house);
    const url = `/sales/${saleId}/reservations/${hold.reservationId}?userId=ann`;
    const asked = await house.app.inject({ url });
    expect(asked.json()).toMatchObject({ status: 404, code: 'reservation_not_found' });
    expect(await h.press(house, saleId, 'ann')).toMatchObject({ status: 202, word: 'ok' });
    await h.drain(house);
    await h.keep(house);
  });
});

/** Events are written in the transaction that changes the order: those that somebody wants, and no others. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { ReservationEvent } from '../../src/http/webhook-schemas.ts';
import { record } from '../../src/ledger/orders.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { refundReservation } from '../../src/operations/refund.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { expectSound, event, madeUp, moveBack, newSale, win } from '../ledger/house.ts';
import { courier, endpointAt, openHouse, openReceiver, outbox, until, type House, type Receiver } from './house.ts';

let house: House;
let shop: Receiver;
beforeAll(async () => {
  house = await openHouse();
  shop = await openReceiver();
});
beforeEach(async () => {
  await house.db.query('delete from webhook_endpoints; delete from webhook_deliveries');
  shop.calls.length = 0;
});
afterAll(async () => {
  await shop.close();
  await house.close();
});

async function ordered(saleId: string, userId: string): Promise<Hold> {
  const hold = await win(house, saleId, userId, 2);
  await recordHolds(house.stores, [hold]);
  return hold;
}
const pay = (hold: Hold) => applyEvent(house.pool, event(hold, 'payment.succeeded'));

test('each of the five, from the walk, reaches the shop signed, once, with what was promised', async () => {
  await endpointAt(house, 'all', shop);
  const saleId = await newSale(house, { total: 10 });
  const paid = await ordered(saleId, 'paid');
  await pay(paid);
  const expired = await ordered(saleId, 'expired');
  await moveBack(house, expired, 700_000);
  await sweep(house.stores, 10);
  const cancelled = await ordered(saleId, 'cancelled');
  await cancelReservation(house.stores, cancelled);
  const queued = await win(house, saleId, 'given up while it is queued'.replaceAll(' ', '-'), 2);
  await cancelReservation(house.stores, queued);
  const rejected = madeUp(saleId, 'rejected', { qty: 99 });
  await record(house.pool, [rejected]);
  const refunded = await ordered(saleId, 'refunded');
  await pay(refunded);
  await refundReservation(house.stores, refunded, true);

  const keeper = courier(house);
  await until(() => shop.calls.length >= 7);
  await keeper.stop();
  const told = shop.calls.map(({ event: { type, data } }) => [type, data.userId]);
  expect(told.sort()).toEqual(
    [
      ['reservation.paid', 'paid'],
      ['reservation.expired', 'expired'],
      ['reservation.cancelled', 'cancelled'],
      ['reservation.cancelled', queued.userId],
      ['reservation.rejected', 'rejected'],
      ['reservation.paid', 'refunded'],
      ['reservation.refunded', 'refunded'],
    ].sort(),
  );
  expect(shop.refused).toEqual([]);
  expect(new Set(shop.calls.map(({ id }) => id)).size).toBe(7);
  expect((await outbox(house)).map(({ status }) => status)).toEqual(Array(7).fill('DELIVERED'));

  // By what it is of, too: two calls go to the shop at once, and either may come first.
  const of = (type: string, { reservationId }: Hold) =>
    shop.calls.find(({ event: { type: its, data } }) => its === type && data.reservationId === reservationId);
  const promised = (hold: Hold) => ({
    ...hold,
    reservedAt: expect.any(String) as string,
    expiresAt: expect.any(String) as string,
  });
  expect(of('reservation.cancelled', cancelled)?.event.data).toEqual({
    ...promised(cancelled),
    reservedAt: new Date(cancelled.reservedAt).toISOString(),
    expiresAt: new Date(cancelled.expiresAt).toISOString(),
    status: 'CANCELLED',
    reason: 'by_buyer',
  });
  expect(of('reservation.expired', expired)?.event.data).toEqual({ ...promised(expired), status: 'EXPIRED' });
  expect(of('reservation.rejected', rejected)?.event.data).toMatchObject({ status: 'REJECTED', reason: 'no_room' });
  expect(of('reservation.refunded', refunded)?.event.data).toMatchObject({ status: 'REFUNDED', unitsReturned: true });
  expect(of('reservation.refunded', refunded)?.id).toBe(`${refunded.reservationId}_refunded`);
  for (const { event: each, body } of shop.calls) {
    expect(Math.abs(Date.parse(each.timestamp) - Date.now())).toBeLessThan(60_000);
    expect(each.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(ReservationEvent.parse(each), 'as the document has it').toEqual(each);
    expect(body, 'as JSON.stringify writes it').toBe(JSON.stringify(each));
  }
  await expectSound(house);
});

test('a change that is rolled back announces nothing; one that is committed does, at that moment', async () => {
  await endpointAt(house, 'all', shop);
  const saleId = await newSale(house);
  const hold = await ordered(saleId, 'u');
  const expire = `update sale_orders set status = 'EXPIRED' where reservation_id = '${hold.reservationId}'`;
  await house.db.query(`begin; ${expire}`);
  expect(await outbox(house)).toHaveLength(1);
  await house.db.query('rollback');
  expect(await outbox(house)).toEqual([]);
  await pay(hold);
  expect(await outbox(house)).toMatchObject([{ type: 'reservation.paid', status: 'PENDING', attempts: 0 }]);
});

test('nothing is written that nobody wants: other events, an endpoint that is inactive, an unpaid order', async () => {
  const saleId = await newSale(house);
  const unwanted = await ordered(saleId, 'nobody-listens');
  await pay(unwanted);
  await endpointAt(house, 'paid-only', shop, ['reservation.paid']);
  await endpointAt(house, 'off', shop);
  await house.db.query(`update webhook_endpoints set active = false where endpoint_id = 'off'`);
  const cancelled = await ordered(saleId, 'a');
  await cancelReservation(house.stores, cancelled);
  expect(await outbox(house)).toEqual([]);
  await pay(await ordered(saleId, 'b'));
  expect(await outbox(house)).toMatchObject([{ endpoint: 'paid-only', type: 'reservation.paid' }]);
});

test('what was written is what is sent, whatever becomes of the order; an event that is there already is left alone', async () => {
  await endpointAt(house, 'all', shop);
  const hold = await ordered(await newSale(house), 'u');
  await pay(hold);
  const payload = async () =>
    (
      await house.db.query<{ text: string }>(
        'select payload::text as text from webhook_deliveries order by delivery_no',
      )
    ).rows;
  const [before] = await payload();
  await refundReservation(house.stores, hold, false);
  expect((await payload())[0]).toEqual(before);
  // As after a repair by hand that takes a status back: the change itself must not fail.
  await house.db.query(`begin; set local session_replication_role = replica;
    update sale_orders set status = 'PENDING_PAYMENT', units_returned = null, gate_released_at = null where reservation_id = '${hold.reservationId}';
    set local session_replication_role = origin;
    update sale_orders set status = 'PAID' where reservation_id = '${hold.reservationId}'; rollback`);
  expect((await outbox(house)).map(({ type }) => type)).toEqual(['reservation.paid', 'reservation.refunded']);
});

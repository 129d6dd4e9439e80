/** The money of a paid order given back by the shop: gate and ledger afterwards, whatever state the gate is in. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { reconcile } from '../../src/keeper/reconcile.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { refundOrder } from '../../src/ledger/refunding.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { getSale } from '../../src/ledger/sales.ts';
import { finish } from '../../src/operations/finish.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
import { refundReservation } from '../../src/operations/refund.ts';
import { applySettings, closeSale, resizeSale, setState } from '../../src/operations/sales.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { books, event, expectSound, newSale, openHouse, orderOf, win, type House } from './house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const QTY = 2;

/** A paid order in a new sale of ten. */
async function paidOrder(userId = 'ann', given?: string): Promise<Hold> {
  const saleId = given ?? (await newSale(house));
  const hold = await win(house, saleId, userId, QTY);
  await house.gate.queued(saleId, hold);
  await recordHolds(house.stores, [hold]);
  await applyEvent(house.pool, event(hold, 'payment.succeeded'));
  return hold;
}
const refund = (hold: Hold, returnUnits: boolean) => refundReservation(house.stores, hold, returnUnits);
const codeOf = (error: unknown) => (error as { code?: string }).code;
async function totals({ saleId }: Hold) {
  const sale = await getSale(house.pool, saleId);
  return { ledger: sale?.total, gate: (await house.gate.figures(saleId))?.total };
}
async function mustGet(saleId: string) {
  const sale = await getSale(house.pool, saleId);
  if (!sale) throw new Error('the sale is gone');
  return sale;
}

test('the buyer may buy again afterwards, and a unit that left the sale is not there to be bought', async () => {
  const hold = await paidOrder();
  await refund(hold, false);
  expect(await books(house, hold.saleId)).toEqual({ sold: 0, stock: 8, held: 0, forfeited: 0 });
  expect(await totals(hold)).toEqual({ ledger: 8, gate: 8 });
  const again = await paidOrder('ann', hold.saleId);
  expect(await orderOf(house, again)).toMatchObject({ status: 'PAID' });
  expect(await orderOf(house, hold)).toMatchObject({ status: 'REFUNDED', marked: true });
});

test('asked twenty times at once, for both: one of them counts, each unit comes back once', async () => {
  for (let round = 0; round < 15; round += 1) {
    const hold = await paidOrder();
    const asked = Array.from({ length: 20 }, (_, n) => n % 2 === 0);
    const answers = await Promise.allSettled(asked.map((returnUnits) => refund(hold, returnUnits)));
    const { rows } = await house.db.query<{ returned: boolean }>(
      'select units_returned as returned from sale_orders where reservation_id = $1',
      [hold.reservationId],
    );
    const returned = rows[0]?.returned;
    answers.forEach((answer, n) => {
      if (asked[n] === returned) expect(answer).toMatchObject({ value: { unitsReturned: returned } });
      else expect(answer.status === 'rejected' && codeOf(answer.reason)).toBe('refunded_otherwise');
    });
    await sweep(house.stores, 10);
    const total = returned === true ? 10 : 10 - QTY;
    expect(await books(house, hold.saleId)).toEqual({ sold: 0, stock: total, held: 0, forfeited: 0 });
    expect(await totals(hold)).toEqual({ ledger: total, gate: total });
  }
});

test('refunds beside a sale that is made smaller and larger: gate and ledger end alike', async () => {
  for (let round = 0; round < 15; round += 1) {
    const first = await paidOrder('ann');
    const second = await paidOrder('bob', first.saleId);
    await Promise.all([
      refund(first, false),
      resizeSale(house.stores, first.saleId, 6 + round),
      refund(second, round % 2 === 0),
    ]);
    await applySettings(house.stores, first.saleId);
    await sweep(house.stores, 10);
    const { ledger, gate } = await totals(first);
    expect(gate).toBe(ledger);
    expect(await books(house, first.saleId)).toEqual({ sold: 0, stock: ledger, held: 0, forfeited: 0 });
  }
});

test('a shrink that died between gate and ledger had taken the number of the new settings: the ledger’s count', async () => {
  const hold = await paidOrder();
  const sale = await mustGet(hold.saleId);
  await house.gate.configure({ ...sale, settings: sale.settings + 1, total: 5, holdSeconds: 1 }, 'ask');
  await refund(hold, false);
  expect((await house.gate.figures(hold.saleId))?.settings).toBe(sale.settings + 1);
  expect(await totals(hold)).toEqual({ ledger: 8, gate: 8 });
  expect(await house.redis.hget(gateKeys(hold.saleId)[4], 'holdSeconds')).toBe(String(sale.holdSeconds));
  expect(await books(house, hold.saleId)).toMatchObject({ stock: 8, held: 0 });
});

test('a gate that is further ahead keeps the hold until the keeper has brought the settings together', async () => {
  const hold = await paidOrder();
  const sale = await mustGet(hold.saleId);
  await house.gate.configure({ ...sale, settings: sale.settings + 2, total: 9 }, 'ask');
  await refund(hold, false);
  expect(await books(house, hold.saleId)).toMatchObject({ held: QTY, stock: 9 - QTY });
  await applySettings(house.stores, hold.saleId);
  await sweep(house.stores, 10);
  expect(await totals(hold)).toEqual({ ledger: 8, gate: 8 });
  expect(await books(house, hold.saleId)).toMatchObject({ held: 0, stock: 8 });
});

test('a gate that is lost meanwhile is rebuilt without the units', async () => {
  const hold = await paidOrder();
  await house.redis.del(...gateKeys(hold.saleId));
  await refund(hold, false);
  expect(await orderOf(house, hold)).toMatchObject({ status: 'REFUNDED', marked: false });
  await openGate(house.stores, hold.saleId, await tokenFor(house.pool, hold.saleId));
  await sweep(house.stores, 10);
  expect(await orderOf(house, hold)).toMatchObject({ status: 'REFUNDED', marked: true });
  expect(await books(house, hold.saleId)).toMatchObject({ held: 0, stock: 8 });
});

test.each([true, false])(
  'a hold that is back again after a failover is released by the full pass (%s)',
  async (returned) => {
    const hold = await paidOrder();
    const [, , holds, , sale] = gateKeys(hold.saleId);
    const before = { hold: await house.redis.hget(holds, hold.userId), fields: await house.redis.hgetall(sale) };
    await refund(hold, returned);
    // As a replica that had not heard of it has it: the hold, the total and the settings of before.
    await house.redis
      .multi()
      .hset(holds, hold.userId, before.hold ?? '')
      .sadd(gateKeys(hold.saleId)[1], hold.userId)
      .hset(sale, before.fields)
      .set(gateKeys(hold.saleId)[0], 10 - QTY)
      .exec();
    await reconcile(house.stores, hold.saleId, { batch: 100, lostGraceMs: 60_000, timeoutMs: 5000 });
    const total = returned ? 10 : 10 - QTY;
    expect(await totals(hold)).toEqual({ ledger: total, gate: total });
    expect(await books(house, hold.saleId)).toMatchObject({ held: 0, stock: total });
  },
);

test('a message that comes again for a refunded order has its hold released', async () => {
  const hold = await paidOrder();
  await refundOrder(house.pool, hold, false); // and then it died
  expect(await recordHolds(house.stores, [hold])).toEqual(['REFUNDED']);
  expect(await books(house, hold.saleId)).toMatchObject({ held: 0, stock: 8, sold: 0 });
  expect(await finish(house.stores, [{ ...hold, status: 'REFUNDED' }])).toMatchObject({ released: 0, waiting: 0 });
});

test('in a closed sale nothing is sold again: the units leave it', async () => {
  const hold = await paidOrder();
  await setState(house.stores, hold.saleId, 'ended');
  await closeSale(house.stores, hold.saleId);
  expect(await refund(hold, true).catch(codeOf)).toBe('ended');
  expect(await refund(hold, false)).toMatchObject({ status: 'REFUNDED', unitsReturned: false });
  expect(await orderOf(house, hold)).toMatchObject({ status: 'REFUNDED', marked: true });
  expect(await mustGet(hold.saleId)).toMatchObject({ total: 0, state: 'closed' });
});

test('a sale is not closed before the gate has given up a refunded order’s hold', async () => {
  const hold = await paidOrder();
  await setState(house.stores, hold.saleId, 'ended');
  await refundOrder(house.pool, hold, true);
  expect(await closeSale(house.stores, hold.saleId).catch(codeOf)).toBe('not_settled');
  await sweep(house.stores, 10);
  expect(await closeSale(house.stores, hold.saleId)).toMatchObject({ state: 'closed' });
});

test('the audit finds everything sound', async () => {
  await expectSound(house);
});

/** What becomes of holds in the ledger, without a queue: room, duplicates, bad ones, locks, and processes that freeze. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sweep } from '../../src/keeper/sweep.ts';
import { LedgerUnavailable } from '../../src/ledger/db.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { recordHolds } from '../../src/worker/record.ts';
import {
  books,
  event,
  expectSound,
  gateIsThere,
  madeUp,
  moveBack,
  newSale,
  openHouse,
  orderOf,
  until,
  win,
  type House,
} from '../ledger/house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const record = (...holds: Parameters<typeof recordHolds>[1]) => recordHolds(house.stores, holds);
const errors = () => house.log.filter(({ level }) => level >= 50);

/** Holds that the gate has forgotten, so that it promised their units again: it wins `buyers` anew on a full ledger. */
async function forgetAndWin(saleId: string, forgotten: string, qty: number, buyers: string[]) {
  const first = await win(house, saleId, forgotten, qty);
  await record(first);
  expect(await house.gate.release(saleId, [first])).toEqual(['released']); // as after a failover to an older replica
  const holds = [];
  for (const buyer of buyers) holds.push(await win(house, saleId, buyer));
  return { first, holds };
}

describe('more winners than units', () => {
  test('those who fit are recorded in order; the others are REJECTED for good, forfeited, and told', async () => {
    const saleId = await newSale(house, { total: 5 });
    const { first, holds } = await forgetAndWin(saleId, 'ann', 3, ['bob', 'cleo', 'dan', 'eve']);
    const before = errors().length;
    expect(await record(...holds)).toEqual(['PENDING_PAYMENT', 'PENDING_PAYMENT', 'REJECTED', 'REJECTED']);
    expect(errors().slice(before)).toHaveLength(2);
    // Two units are of live orders with holds; three are the forgotten order's, of which two are back as forfeited.
    expect(await books(house, saleId)).toEqual({ sold: 5, stock: 1, held: 2, forfeited: 2 });
    for (const hold of holds.slice(2)) {
      expect(await orderOf(house, hold)).toEqual({ status: 'REJECTED', reason: 'no_room', live: null, marked: true });
    }
    // The message again, also when there is room by then: what was refused stays refused.
    await cancelReservation(house.stores, first);
    expect(await record(...holds)).toEqual(['PENDING_PAYMENT', 'PENDING_PAYMENT', 'REJECTED', 'REJECTED']);
    expect(await books(house, saleId)).toMatchObject({ sold: 2, held: 2, forfeited: 2 });
  });

  test('one who does not fit takes no place from the smaller ones after it', async () => {
    const saleId = await newSale(house, { total: 3 });
    const [two, big, one] = [1, 3, 1].map((qty, n) => madeUp(saleId, `b-${n}`, { qty }));
    if (!two || !big || !one) throw new Error('three holds');
    expect(await record(two, big, one)).toEqual(['PENDING_PAYMENT', 'REJECTED', 'PENDING_PAYMENT']);
    expect((await books(house, saleId)).sold).toBe(2);
    await house.gate.adopt(saleId, [two, one]);
  });

  test('many recorders at once never sell more than there is, and sell all of it', async () => {
    const saleId = await newSale(house, { total: 50 });
    const holds = Array.from({ length: 200 }, (_, n) => madeUp(saleId, `b-${n}`));
    const batches = Array.from({ length: 20 }, (_, n) => holds.slice(10 * n, 10 * n + 10));
    const answers = (await Promise.all(batches.map((batch) => record(...batch)))).flat();
    expect(answers.filter((answer) => answer === 'PENDING_PAYMENT')).toHaveLength(50);
    expect(answers.filter((answer) => answer === 'REJECTED')).toHaveLength(150);
    expect((await books(house, saleId)).sold).toBe(50);
    await house.gate.adopt(
      saleId,
      holds.filter((_, n) => answers[n] === 'PENDING_PAYMENT'),
    );
  });
});

describe('a second reservation of a buyer with a live order', () => {
  test.each(['PENDING_PAYMENT', 'PAID'])(
    '%s: refused with which order, the first untouched, its unit forfeited',
    async (status) => {
      const saleId = await newSale(house);
      const { first, holds } = await forgetAndWin(saleId, 'ann', 2, ['ann']);
      const [second] = holds;
      if (!second) throw new Error('a second hold');
      if (status === 'PAID') await applyEvent(house.pool, event(first, 'payment.succeeded'));
      for (let n = 0; n < 3; n += 1) {
        // No loop: the redelivery finds it refused.
        expect(await record(second)).toEqual(['REJECTED']);
        expect(await orderOf(house, first)).toMatchObject({ status });
        expect(await orderOf(house, second)).toEqual({
          ...{ status: 'REJECTED', reason: 'duplicate_buyer', live: first.reservationId, marked: true },
        });
        expect(await books(house, saleId)).toEqual({ sold: 2, stock: 9, held: 0, forfeited: 1 });
      }
      await house.gate.adopt(saleId, [first]);
      expect(await books(house, saleId)).toEqual({ sold: 2, stock: 8, held: 2, forfeited: 0 });
    },
  );

  test('in one batch: the first in it wins', async () => {
    const saleId = await newSale(house);
    const [one, two] = [madeUp(saleId, 'ann'), madeUp(saleId, 'ann')];
    expect(await record(one, two)).toEqual(['PENDING_PAYMENT', 'REJECTED']);
    expect(await orderOf(house, two)).toMatchObject({ reason: 'duplicate_buyer', live: one.reservationId });
    await house.gate.adopt(saleId, [one]);
  });

  test('after the first has ended there is nothing in its way', async () => {
    const saleId = await newSale(house);
    const first = await win(house, saleId, 'ann');
    await record(first);
    await moveBack(house, first, 3_600_000);
    await sweep(house.stores, 10);
    const second = await win(house, saleId, 'ann');
    expect(await record(first, second)).toEqual(['EXPIRED', 'PENDING_PAYMENT']);
    expect(await books(house, saleId)).toEqual({ sold: 1, stock: 9, held: 1, forfeited: 0 });
  });
});

test('cancelled while the message is in the queue: it stays cancelled, and the unit is sold once', async () => {
  const saleId = await newSale(house, { total: 1 });
  const hold = await win(house, saleId, 'ann');
  expect(await cancelReservation(house.stores, hold)).toMatchObject({ status: 'CANCELLED' });
  const next = await win(house, saleId, 'bob');
  expect(await record(hold, next)).toEqual(['CANCELLED', 'PENDING_PAYMENT']);
  expect(await books(house, saleId)).toEqual({ sold: 1, stock: 0, held: 1, forfeited: 0 });
});

test('a bad hold in a batch fails alone, and a sale that does not exist fails alone', async () => {
  const saleId = await newSale(house, { total: 20 });
  const good = await Promise.all(Array.from({ length: 9 }, (_, n) => win(house, saleId, `b-${n}`)));
  const bad = [madeUp(saleId, 'nina', { qty: 2_147_483_648 }), madeUp('none', 'ann')];
  const answers = await record(...good.slice(0, 4), ...bad, ...good.slice(4));
  expect(answers.filter((answer) => answer === 'PENDING_PAYMENT')).toHaveLength(9);
  expect(String(answers[4])).toMatch('out of range for type integer');
  expect(String(answers[5])).toMatch('there is no sale none');
  expect(await books(house, saleId)).toMatchObject({ sold: 9, held: 9 });
});

test('two batches with the same buyers in opposite order, 50 rounds: nobody sees a deadlock, each is recorded once', async () => {
  const ids = [await newSale(house, { total: 1000 }), await newSale(house, { total: 1000 })];
  const other = house.another();
  await gateIsThere(other);
  for (let round = 0; round < 50; round += 1) {
    const holds = await Promise.all(
      ids.flatMap((saleId) => Array.from({ length: 10 }, (_, n) => win(house, saleId, `r${round}-${n}`))),
    );
    const [one, two] = await Promise.all([
      recordHolds(house.stores, holds),
      recordHolds(other.stores, holds.toReversed()),
    ]);
    expect(new Set([...one, ...two])).toEqual(new Set(['PENDING_PAYMENT']));
  }
  await other.close();
  for (const saleId of ids) expect((await books(house, saleId)).sold).toBe(500);
  const { rows } = await house.db.query('select deadlocks from pg_stat_database where datname = current_database()');
  expect(rows).toEqual([{ deadlocks: '0' }]);
});

test('a worker frozen inside its transaction: others time out, then the server ends it and they go on', async () => {
  const saleId = await newSale(house);
  const hold = await win(house, saleId, 'ann');
  const frozen = house.another({ DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: '3000' });
  const patient = house.another({ DB_LOCK_TIMEOUT_MS: '300' });
  await Promise.all([frozen, patient].map(gateIsThere));
  const client = await frozen.stores.pool.connect();
  client.on('error', () => undefined); // it is ended by the server
  await client.query('begin');
  await client.query('select 1 from sale_stock where sale_id = $1 for no key update', [saleId]);

  const [answer] = await recordHolds(patient.stores, [hold]);
  expect(answer).toBeInstanceOf(LedgerUnavailable);
  const started = performance.now();
  await until(async () => (await recordHolds(patient.stores, [hold]))[0] === 'PENDING_PAYMENT');
  expect(performance.now() - started).toBeGreaterThan(500); // it was really waited for
  await expect(client.query('commit')).rejects.toThrow();
  client.release(true);
  await Promise.all([frozen.close(), patient.close()]);
  expect(await books(house, saleId)).toMatchObject({ sold: 1, held: 1 });
});

describe('a gate that cannot tell', () => {
  test('keeps no order from being recorded or refused; what is to be forfeited waits for the keeper', async () => {
    const saleId = await newSale(house, { total: 2 });
    const { first, holds } = await forgetAndWin(saleId, 'ann', 2, ['bob']);
    const [surplus] = holds;
    if (!surplus) throw new Error('a surplus winner');
    await house.redis.hset(`{sale:${saleId}}:sale`, 'state', 'loading');
    expect(await record(surplus)).toEqual(['REJECTED']);
    expect(await orderOf(house, surplus)).toMatchObject({ status: 'REJECTED', marked: false });
    expect(await sweep(house.stores, 10)).toMatchObject({ waiting: 1 });
    await house.redis.hset(`{sale:${saleId}}:sale`, 'state', 'open');
    expect(await sweep(house.stores, 10)).toMatchObject({ forfeited: 1, waiting: 0 });
    expect(await orderOf(house, surplus)).toMatchObject({ marked: true });
    await house.gate.adopt(saleId, [first]);
    expect(await books(house, saleId)).toEqual({ sold: 2, stock: 0, held: 2, forfeited: 0 });
  });
});

test('nothing at all to record is nothing', async () => {
  expect(await record()).toEqual([]);
});

test('the audit finds everything sound that was left behind', async () => {
  await expectSound(house);
});

/** The sweeper: what is due by the database's clock, shared by several, and finished by the next one when one dies. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { expireDue, record } from '../../src/ledger/orders.ts';
import { applyEvent, settleParked } from '../../src/ledger/payments.ts';
import { getSale } from '../../src/ledger/sales.ts';
import { finish } from '../../src/operations/finish.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
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
import { privateRedis } from '../support/servers.ts';
import { freshStores } from '../support/stores.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const HOUR_MS = 3_600_000;
const NOTHING = { expired: 0, released: 0, forfeited: 0, waiting: 0 };

/** A recorded order of a buyer who holds, whose time is over. */
async function due(saleId: string, userId: string, qty = 1): Promise<Hold> {
  const hold = await win(house, saleId, userId, qty);
  await recordHolds(house.stores, [hold]);
  await moveBack(house, hold, HOUR_MS);
  return hold;
}

describe('a hold lasts as long as promised', () => {
  afterEach(() => vi.useRealTimers());

  test.each([90_000, -90_000])('with an application clock that is %i ms off', async (offMs) => {
    const saleId = await newSale(house, { holdSeconds: 60 });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs });
    const hold = await win(house, saleId, 'ann');
    await recordHolds(house.stores, [hold]);
    expect(hold.expiresAt - hold.reservedAt).toBe(60_000);
    expect(await expireDue(house.pool, 10)).toEqual([]);
    const { rows } = await house.db.query<{ left: number }>(
      'select extract(epoch from expires_at - now())::float as left from sale_orders where reservation_id = $1',
      [hold.reservationId],
    );
    expect(rows[0]?.left).toBeGreaterThan(50);
    expect(rows[0]?.left).toBeLessThanOrEqual(60);

    await moveBack(house, hold, 50_000);
    expect(await expireDue(house.pool, 10)).toEqual([]); // ten seconds are left
    await moveBack(house, hold, 10_000);
    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, expired: 1, released: 1 });
  });
});

test('several sweepers at once share the work: each order ends once, each unit comes back once', async () => {
  const ids = await Promise.all(Array.from({ length: 3 }, () => newSale(house, { total: 100 })));
  for (const saleId of ids) {
    const holds = await Promise.all(Array.from({ length: 100 }, (_, n) => win(house, saleId, `b-${n}`)));
    await recordHolds(house.stores, holds);
    for (const hold of holds) await moveBack(house, hold, HOUR_MS);
  }
  const others = [house.another(), house.another()];
  await Promise.all(others.map(gateIsThere));
  const sweepers = [house.stores, house.stores, ...others.map(({ stores }) => stores)];
  const swept = await Promise.all(sweepers.map((stores) => sweep(stores, 10)));
  await Promise.all(others.map(({ close }) => close()));
  expect(swept.reduce((sum, { expired }) => sum + expired, 0)).toBe(300);
  expect(swept.reduce((sum, { released }) => sum + released, 0)).toBe(300);
  for (const saleId of ids) {
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 100, held: 0, forfeited: 0 });
  }
  expect(await sweep(house.stores, 10)).toEqual(NOTHING);
});

describe('a sweeper that dies', () => {
  test('between EXPIRED and release: the next pass releases, once', async () => {
    const saleId = await newSale(house);
    const hold = await due(saleId, 'ann', 2);
    expect(await expireDue(house.pool, 10)).toHaveLength(1);
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 8, held: 2, forfeited: 0 });
    expect(await orderOf(house, hold)).toMatchObject({ status: 'EXPIRED', marked: false });

    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, released: 1 });
    expect(await sweep(house.stores, 10)).toEqual(NOTHING);
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 10, held: 0, forfeited: 0 });
    expect(await orderOf(house, hold)).toMatchObject({ marked: true });
  });

  test('between release and the mark: the next pass marks, and releases nothing', async () => {
    const saleId = await newSale(house);
    const hold = await due(saleId, 'ann');
    const expired = await expireDue(house.pool, 10);
    expect(await house.gate.release(saleId, expired)).toEqual(['released']);

    expect(await sweep(house.stores, 10)).toEqual(NOTHING);
    expect(await orderOf(house, hold)).toMatchObject({ marked: true });
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 10, held: 0, forfeited: 0 });
  });

  test('before the commit: nothing was released, and the order is still to be paid', async () => {
    const saleId = await newSale(house);
    const hold = await due(saleId, 'ann');
    await house.db.query('begin');
    await house.db.query('select 1 from sale_stock where sale_id = $1 for update', [saleId]);
    const sweeping = sweep(house.stores, 10).catch((error: unknown) => error);
    const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await house.db.query(waiting)).rows.length > 0);
    expect(await books(house, saleId)).toMatchObject({ held: 1 });
    await house.db.query(`select pg_terminate_backend(pid) from (${waiting}) as w`);
    expect(await sweeping).toBeInstanceOf(Error);
    await house.db.query('rollback');
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PENDING_PAYMENT' });
    expect(await books(house, saleId)).toMatchObject({ sold: 1, held: 1 });
    expect(await sweep(house.stores, 10)).toMatchObject({ expired: 1, released: 1 });
  });
});

describe('an order that is recorded when its time is over, since the queue was slow', () => {
  test('is not expired under the money that came in time', async () => {
    const saleId = await newSale(house);
    const hold = madeUp(saleId, 'ann', { reservedAt: 1, expiresAt: 2 });
    await applyEvent(house.pool, event(hold, 'payment.succeeded'));
    await record(house.pool, [hold]);
    expect(await sweep(house.stores, 10)).toEqual(NOTHING);
    await settleParked(house.pool, 60_000, 10);
    expect(await orderOf(house, hold)).toMatchObject({ status: 'PAID' });
    expect(await sweep(house.stores, 10)).toEqual(NOTHING);
    await house.gate.adopt(saleId, [hold]);
  });

  test('is expired once that money has turned out not to pay it', async () => {
    const saleId = await newSale(house);
    const hold = madeUp(saleId, 'ann', { reservedAt: 1, expiresAt: 2 });
    await applyEvent(house.pool, event(hold, 'payment.succeeded', { amount: hold.amount - 1 }));
    await record(house.pool, [hold]);
    expect(await sweep(house.stores, 10)).toEqual(NOTHING);
    await settleParked(house.pool, 60_000, 10);
    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, expired: 1 });
  });

  test('and is expired like any other without', async () => {
    const saleId = await newSale(house);
    await record(house.pool, [madeUp(saleId, 'ann', { reservedAt: 1, expiresAt: 2 })]);
    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, expired: 1 });
  });
});

describe('a gate that cannot tell leaves the order unmarked, until it can', () => {
  test('not loaded, then loading, then loaded', async () => {
    const saleId = await newSale(house);
    const hold = await due(saleId, 'ann');
    await house.gate.remove(saleId);
    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, expired: 1, waiting: 1 });
    expect(await orderOf(house, hold)).toMatchObject({ status: 'EXPIRED', marked: false });

    const token = await tokenFor(house.pool, saleId);
    expect(await house.gate.begin(saleId, token)).toBe('begun');
    await house.gate.chunk(saleId, [hold], token); // read before it ended
    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, waiting: 1 });
    expect(await orderOf(house, hold)).toMatchObject({ marked: false });

    const sale = await getSale(house.pool, saleId);
    if (!sale) throw new Error('no sale');
    expect(await house.gate.open(sale, token)).toBe('opened');
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 9, held: 1, forfeited: 0 });
    expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, released: 1 });
    expect(await orderOf(house, hold)).toMatchObject({ marked: true });
    expect(await books(house, saleId)).toEqual({ sold: 0, stock: 10, held: 0, forfeited: 0 });
  });

  test('Redis away, then back', async () => {
    const [fresh, server] = await Promise.all([freshStores(), privateRedis()]);
    const env = { ...fresh.env, REDIS_URL: server.url };
    const own = await openHouse({ fresh: { ...fresh, redisUrl: server.url, env } });
    const saleId = await newSale(own);
    const hold = await win(own, saleId, 'ann');
    await recordHolds(own.stores, [hold]);
    await moveBack(own, hold, HOUR_MS);
    own.redis.disconnect();
    server.kill('SIGKILL');
    await server.exited;
    expect(await sweep(own.stores, 10)).toEqual({ ...NOTHING, expired: 1, waiting: 1 });
    expect(await orderOf(own, hold)).toMatchObject({ status: 'EXPIRED', marked: false });
    expect(own.log.map(({ msg }) => msg)).toContain('the gate cannot release now: the keeper will');

    await server.restart();
    await expect.poll(() => sweep(own.stores, 10), { timeout: 15_000 }).toEqual({ ...NOTHING, released: 1 });
    expect(await orderOf(own, hold)).toMatchObject({ marked: true });
    expect(await books(own, saleId)).toEqual({ sold: 0, stock: 10, held: 0, forfeited: 0 });
    await own.close();
    await fresh.drop();
  });
});

describe('a buyer who holds anew keeps the new hold', () => {
  test('when the release of the old one comes again, twice and late', async () => {
    const saleId = await newSale(house);
    const old = await due(saleId, 'ann', 2);
    await sweep(house.stores, 10);
    const anew = await win(house, saleId, 'ann', 3);
    await recordHolds(house.stores, [anew]);
    for (let n = 0; n < 2; n += 1) {
      await house.db.query('update sale_orders set gate_released_at = null where reservation_id = $1', [
        old.reservationId,
      ]);
      expect(await sweep(house.stores, 10)).toEqual(NOTHING);
      expect(await orderOf(house, old)).toMatchObject({ marked: true });
    }
    expect(await finish(house.stores, [{ ...old, status: 'EXPIRED' }])).toMatchObject({ released: 0, waiting: 0 });
    expect(await books(house, saleId)).toEqual({ sold: 3, stock: 7, held: 3, forfeited: 0 });
    expect(await house.gate.hold(saleId, 'ann')).toEqual(anew);
  });

  test('when the gate forgot the old one before it was released', async () => {
    const saleId = await newSale(house);
    const old = await due(saleId, 'ann', 2);
    await expireDue(house.pool, 10);
    await house.gate.remove(saleId);
    await openGate(house.stores, saleId, await tokenFor(house.pool, saleId));
    const anew = await win(house, saleId, 'ann', 3);
    expect(await sweep(house.stores, 10)).toEqual(NOTHING);
    expect(await orderOf(house, old)).toMatchObject({ marked: true });
    expect(await house.gate.hold(saleId, 'ann')).toEqual(anew);
    await recordHolds(house.stores, [anew]);
    expect(await books(house, saleId)).toEqual({ sold: 3, stock: 7, held: 3, forfeited: 0 });
  });
});

test('a sale that cannot be swept does not keep the others waiting, and is told', async () => {
  const [damaged, other] = [await newSale(house), await newSale(house)];
  const [stuck, free] = [await due(damaged, 'ann'), await due(other, 'ann')];
  await house.db.query('update sale_stock set sold = 0 where sale_id = $1', [damaged]); // it would fall below 0
  await expect(sweep(house.stores, 1)).rejects.toThrow('sale_stock_sold_check');
  expect(await orderOf(house, stuck)).toMatchObject({ status: 'PENDING_PAYMENT' });
  expect(await orderOf(house, free)).toMatchObject({ status: 'EXPIRED', marked: true });
  expect(house.log.filter(({ saleId, level }) => saleId === damaged && level === 50)).toHaveLength(1);

  await house.db.query('update sale_stock set sold = 1 where sale_id = $1', [damaged]);
  expect(await sweep(house.stores, 1)).toEqual({ ...NOTHING, expired: 1, released: 1 });
});

test('a closed sale’s gate is gone for good: its orders wait for nothing', async () => {
  const saleId = await newSale(house);
  const hold = await due(saleId, 'ann');
  await expireDue(house.pool, 10);
  await house.gate.remove(saleId);
  await house.db.query(`update sales set state = 'closed' where sale_id = $1`, [saleId]);
  expect(await sweep(house.stores, 10)).toEqual(NOTHING);
  expect(await orderOf(house, hold)).toMatchObject({ status: 'EXPIRED' });
});

test('an order whose hold the gate never had gives nothing to the stock', async () => {
  const saleId = await newSale(house);
  const forgotten = madeUp(saleId, 'ann');
  await recordHolds(house.stores, [forgotten]);
  await moveBack(house, forgotten, HOUR_MS);
  expect(await sweep(house.stores, 10)).toEqual({ ...NOTHING, expired: 1 });
  expect(await books(house, saleId)).toEqual({ sold: 0, stock: 10, held: 0, forfeited: 0 });
});

test('the audit finds everything sound that was left behind', async () => {
  await expectSound(house);
});

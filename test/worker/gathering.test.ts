/**
 * The worker gathers what several receives bring into one transaction of the ledger; and if that one cannot be written,
 * each hold still goes by itself. The sale is locked until all receives are in hand, so that they have to wait.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { messageAge } from '../../src/meter.ts';
import { madeUp, newSale, openHouse, until, type House } from '../ledger/house.ts';
import { send, withWorker } from './queue.ts';

/** The most that one receive brings. */
const RECEIVE = 10;
const RECEIVES = 6;

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const received = async () => {
  const { values } = await messageAge.get();
  const named = values as ((typeof values)[number] & { metricName?: string })[];
  return named.find(({ metricName }) => metricName === 'flashgate_message_age_seconds_count')?.value ?? 0;
};

/** Has a worker record these; `done` orders are waited for. @returns how many orders each transaction wrote, largest first */
async function recordAll(saleId: string, holds: Hold[], done: number): Promise<number[]> {
  await send(house, holds);
  const before = await received();
  await house.db.query('begin');
  await house.db.query('select 1 from sale_stock where sale_id = $1 for update', [saleId]);
  const transactions = async () => {
    const { rows } = await house.db.query<{ n: number }>(
      'select count(*)::int as n from sale_orders where sale_id = $1 group by xmin order by n desc',
      [saleId],
    );
    return rows.map(({ n }) => n);
  };
  const options = { receivers: RECEIVES + 2, batch: 100, visibilitySeconds: 30 };
  return withWorker(
    house,
    async () => {
      await until(async () => (await received()) - before === holds.length);
      await house.db.query('rollback');
      await until(async () => (await transactions()).reduce((sum, n) => sum + n, 0) === done);
      return transactions();
    },
    options,
  );
}

/** What waits when the sale is unlocked is in two transactions that are under way, and in the next. */
const TRANSACTIONS = 3;
const LARGEST = (RECEIVE * RECEIVES) / TRANSACTIONS;

test('one transaction for the holds of several receives', async () => {
  const count = RECEIVE * RECEIVES;
  const saleId = await newSale(house, { total: count });
  const holds = Array.from({ length: count }, (_, n) => madeUp(saleId, `buyer-${n}`));
  const transactions = await recordAll(saleId, holds, count);
  expect(transactions.length).toBeLessThanOrEqual(TRANSACTIONS);
  expect(transactions[0]).toBeGreaterThanOrEqual(LARGEST);
});

test('holds that the database refuses are alone in that, however many were gathered with them', async () => {
  const saleId = await newSale(house, { total: 1000 });
  const good = LARGEST - 1; // so few that the largest batch has a bad one for certain
  const holds = Array.from({ length: RECEIVE * RECEIVES }, (_, n) =>
    madeUp(saleId, `buyer-${n}`, n % TRANSACTIONS === 0 && n / TRANSACTIONS < good ? {} : { qty: 2_147_483_648 }),
  );
  await recordAll(saleId, holds, good);
  const whole = house.log.filter(({ msg }) => msg.startsWith('a batch cannot be recorded as a whole'));
  expect(Math.max(...whole.map((line) => Number(line['holds'])))).toBeGreaterThanOrEqual(LARGEST);
});

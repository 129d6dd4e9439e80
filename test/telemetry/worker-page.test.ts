/** The worker's page: how long an order took from the gate to the ledger. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { madeUp, newSale, openHouse, orderOf, until, type House } from '../ledger/house.ts';
import { start } from '../process/program.ts';
import { settings } from '../http/api.ts';
import { send } from '../worker/queue.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

test('the lag of an order is from its hold to its being recorded', { timeout: 60_000 }, async () => {
  const METRICS_PORT = String(await freePort());
  const worker = start(['work'], { ...settings, ...house.settings, METRICS_PORT });
  const hold = madeUp(await newSale(house), 'ann', { reservedAt: Date.now() - 40_000 });
  const least = (Date.now() - hold.reservedAt) / 1000;
  await send(house, [hold]);
  await until(async () => (await orderOf(house, hold)) !== undefined, 40_000);
  const name = 'flashgate_order_lag_seconds';
  const read = async () => {
    const text = await (await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).text();
    return new Map(
      [...text.matchAll(new RegExp(`^${name}(\\S+) (\\S+)$`, 'gm'))].map(([, of, value]) => [of, Number(value)]),
    );
  };
  await until(async () => (await read()).get('_count') === 1); // it is counted after it is committed
  const most = (Date.now() - hold.reservedAt) / 1000;
  const lag = await read();
  expect(lag.get('_sum')).toBeGreaterThanOrEqual(least);
  expect(lag.get('_sum')).toBeLessThanOrEqual(most);
  expect(lag.get('_bucket{le="30"}')).toBe(0);
  expect(lag.get('_bucket{le="+Inf"}')).toBe(1);
  worker.kill('SIGTERM');
  expect((await worker.ended).code).toBe(0);
});

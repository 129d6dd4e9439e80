/** A keeper that dies between the ledger and the gate: whoever replaces it does that first. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { until, type House } from '../ledger/house.ts';
import * as k from './keepers.ts';

vi.setConfig({ testTimeout: 2 * k.PATIENCE_MS });

let house: House;
beforeAll(async () => {
  house = await k.openStores();
});
afterAll(() => house.close());

test('what it left half done is given back before what has become due since', async () => {
  const [saleId = ''] = await k.openSales(house, 1);
  const first = await k.dueOrder(house, saleId);
  const dies = k.keep(house, { CRASH_AT: 'order_ended' });
  expect(await dies.ended).toEqual({ code: null, signal: 'SIGKILL' });
  expect(await k.handled(house, [first])).toEqual([{ saleId, status: 'EXPIRED', released: null, expiries: 1 }]);
  expect(await house.gate.figures(saleId), 'the gate holds it still').toMatchObject({ stock: 9, held: 1 });
  const next = await k.dueOrder(house, saleId);

  const heir = k.keep(house);
  const [half, since] = await k.untilHandled(house, [first, next]);
  expect(half?.released ?? Infinity).toBeLessThan(since?.released ?? -Infinity);
  await until(() => k.sweeps(heir).size > 0, k.PATIENCE_MS);
  expect([...k.sweeps(heir).values()], 'it ended one, and gave back two').toEqual([
    expect.objectContaining({ expired: 1, released: 2 }),
  ]);
  expect(await house.gate.figures(saleId)).toMatchObject({ stock: 10, held: 0, forfeited: 0 });
  expect((await heir.stop()).code).toBe(0);
});

/** Commands that ask once, as cron runs them: a Redis that is far away is not one that is away. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import * as h from './house.ts';
import { start } from './process.ts';
import { lineTo, through, type Line } from './proxy.ts';

let house: h.House;
let line: Line;
let env: Record<string, string>;
beforeAll(async () => {
  house = await h.openHouse();
  line = await lineTo(Number(new URL(house.redisUrl).port));
  env = { ...house.settings, REDIS_URL: through(line, house.redisUrl) };
});
afterAll(() => h.closeHouse(house));

test(
  'a tenth of a second away: each command waits for its connection, and does its work',
  { timeout: 60_000 },
  async () => {
    line.farMs = 100;
    const saleId = await h.newSale(house);
    const due = await h.winOrder(house, saleId, 'ann', 2);
    const run = async (...command: string[]) => {
      const child = start(command, env);
      expect(await child.ended, `${command.join(' ')}: ${JSON.stringify(child.said)}`).toEqual({
        code: 0,
        signal: null,
      });
    };
    await house.redis.del(...gateKeys(saleId));
    await run('rebuild', '--sale', saleId);
    expect(await h.books(house, saleId)).toMatchObject({ held: 2, stock: 8 });
    await h.moveBack(house, due, 700_000);
    await run('sweep', '--once');
    expect(await h.books(house, saleId)).toMatchObject({ held: 0, stock: 10 });
    await h.recordOnly(house, h.madeUp(saleId, 'bob'));
    await run('reconcile', '--once', '--sale', saleId);
    expect(await h.books(house, saleId)).toMatchObject({ held: 1, stock: 9, sold: 1 });
    await h.expectSettled(house);
  },
);

test('away: exit 1 with the reason, within a few seconds', { timeout: 30_000 }, async () => {
  line.cut();
  await line.close();
  const began = performance.now();
  const child = start(['sweep', '--once'], env);
  expect(await child.ended).toEqual({ code: 1, signal: null });
  expect(child.said.map(({ msg }) => msg).join(' ')).toMatch(/Redis|ECONNREFUSED|writeable/);
  expect(performance.now() - began).toBeLessThan(15_000);
});

/**
 * Three keepers that are started, stopped and killed again and again while orders become due: each expiry once.
 * `CHURN_MINUTES=3 npm test -- test/leases/churn.test.ts` goes on for so long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { expectSound, until, type House } from '../ledger/house.ts';
import type { Running } from '../repair/process.ts';
import * as k from './keepers.ts';

const MINUTES = Number(process.env['CHURN_MINUTES'] ?? 0);
vi.setConfig({ testTimeout: 3 * k.PATIENCE_MS + MINUTES * 60_000 });

const SALES = 12;
const KEEPERS = 3;
const RESTARTS = 4;

let house: House;
beforeAll(async () => {
  house = await k.openStores();
});
afterAll(async () => {
  await expectSound(house);
  await house.close();
});

const sum = (all: Running[], of: 'expired' | 'released') =>
  all.flatMap((keeper) => [...k.sweeps(keeper).values()]).reduce((total, swept) => total + swept[of], 0);

/** A process that has not come so far yet would be ended by the signal itself. */
const untilAtWork = (pid: number) =>
  until(async () => [...(await k.leases(house)).values()].includes(pid), k.PATIENCE_MS);

test('nothing is handled twice, nothing is left', async () => {
  const sales = await k.openSales(house, SALES, 1000);
  const all: Running[] = [];
  const begin = () => {
    const keeper = k.keep(house);
    all.push(keeper);
    return keeper;
  };
  const slots = Array.from({ length: KEEPERS }, begin);

  const due: Hold[] = [];
  const over = new AbortController();
  const load = (async () => {
    while (!over.signal.aborted) {
      for (const saleId of sales) due.push(await k.dueOrder(house, saleId));
      await sleep(50);
    }
  })();
  load.catch(() => over.abort()); // it is told by the `await` below
  try {
    for (const { pid } of slots) await untilAtWork(pid);
    const enough = performance.now() + MINUTES * 60_000;
    for (let n = 0; n < RESTARTS || performance.now() < enough; n += 1) {
      const slot = n % KEEPERS;
      const old = slots[slot] as Running;
      old.kill(n % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
      const { code, signal } = await old.ended;
      expect([code, signal]).toEqual(n % 2 === 0 ? [0, null] : [null, 'SIGKILL']);
      const fresh = (slots[slot] = begin());
      await untilAtWork(fresh.pid);
    }
  } finally {
    over.abort();
    await load;
  }
  await k.untilHandled(house, due);
  await Promise.all(slots.map((keeper) => keeper.stop()));

  const { rows } = await house.db.query(`select reservation_id from ledger_entries where kind = 'expiry'`);
  expect(rows).toHaveLength(due.length);
  if (MINUTES > 0) console.log(`${all.length} keepers were started, ${due.length} orders expired, each once`);
  for (const saleId of sales) {
    expect(await house.gate.figures(saleId)).toMatchObject({ stock: 1000, held: 0, forfeited: 0 });
  }
  // Who was killed may not have come to log what it did; nobody logs what somebody else did.
  expect(sum(all, 'expired')).toBeLessThanOrEqual(due.length);
  expect(sum(all, 'expired')).toBeGreaterThan(due.length / 2);
  expect(sum(all, 'released')).toBeLessThanOrEqual(due.length);
  expect(await k.leases(house), 'a clean stop leaves no leases').toEqual(new Map());
});

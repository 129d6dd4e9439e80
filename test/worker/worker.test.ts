/** The worker on a real queue: what is done is acknowledged, exactly; what is not comes again, or is put aside. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { formatMessage, parseMessage } from '../../src/queue/message.ts';
import { recordHolds } from '../../src/worker/record.ts';
import {
  books,
  expectSound,
  gateIsThere,
  madeUp,
  newSale,
  openHouse,
  orderOf,
  until,
  win,
  type House,
} from '../ledger/house.ts';
import { countReceives, depth, receive, remove, send, untilEmpty, withWorker } from './queue.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse({ visibilitySeconds: 1 });
});
afterAll(() => house.close());

const winners = (saleId: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => win(house, saleId, `buyer-${n}`)));

async function statuses(saleId: string): Promise<Record<string, number>> {
  const { rows } = await house.db.query<{ status: string; n: number }>(
    'select status, count(*)::int as n from sale_orders where sale_id = $1 group by 1 order by 1',
    [saleId],
  );
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}
const recorded = async (saleId: string) => (await statuses(saleId))['PENDING_PAYMENT'] ?? 0;

test('many holds, in any order and some of them more than once: each is one order', async () => {
  const saleId = await newSale(house, { total: 300 });
  const holds = await winners(saleId, 300);
  const all = [...holds, ...holds.slice(0, 100), ...holds.slice(50, 80)];
  await withWorker(house, async () => {
    await send(
      house,
      all.sort((a, b) => (a.reservationId < b.reservationId ? -1 : 1)),
    );
    expect(await untilEmpty(house)).toBe(0);
  });
  expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 300 });
  expect(await books(house, saleId)).toEqual({ sold: 300, stock: 0, held: 300, forfeited: 0 });
});

test('several workers at once: each hold is one order', async () => {
  const saleId = await newSale(house, { total: 200 });
  await send(house, await winners(saleId, 200));
  const [one, two] = [house.another(), house.another()];
  await Promise.all([one, two].map(gateIsThere));
  await withWorker(house, () =>
    withWorker({ ...house, ...one }, () =>
      withWorker({ ...house, ...two }, async () => {
        expect(await untilEmpty(house)).toBe(0);
      }),
    ),
  );
  await Promise.all([one, two].map(({ close }) => close()));
  expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 200 });
});

test('what can never be done goes to the dead-letter queue after its receives; its neighbours are done at once', async () => {
  const saleId = await newSale(house);
  const good = await winners(saleId, 5);
  const sound = madeUp(saleId, 'mallory');
  const { userId: _, ...missing } = { v: 1, ...sound };
  const poison = [
    'not JSON',
    'null',
    JSON.stringify({ ...sound, v: 2 }),
    JSON.stringify(missing),
    JSON.stringify({ v: 1, ...sound, more: 1 }),
    formatMessage({ ...sound, qty: 1.5 }),
    formatMessage({ ...sound, expiresAt: sound.reservedAt }),
    formatMessage(madeUp('no-such-sale', 'ann')),
    // These two are well-formed, and the database refuses them: no integer of its is as large.
    formatMessage({ ...madeUp(saleId, 'nina'), qty: 3_000_000_000 }),
    formatMessage({ ...madeUp(saleId, 'otto'), qty: 2_147_483_648 }),
  ];
  await withWorker(house, async () => {
    await send(
      house,
      good.flatMap((hold, n) => [...poison.slice(2 * n, 2 * n + 2), hold]),
    );
    await until(async () => (await recorded(saleId)) === 5, 8000);
    expect(await untilEmpty(house, 30_000)).toBe(poison.length);
  });
  expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 5 });
  const dead: string[] = [];
  const letters = { sqs: house.sqs, queueUrl: house.dlqUrl };
  while (dead.length < poison.length) {
    for (const { Body = '', ReceiptHandle } of await receive(letters)) {
      dead.push(Body);
      await remove(letters, ReceiptHandle);
    }
  }
  expect(dead.sort()).toEqual(poison.sort());
}, 40_000);

describe('a worker that dies', () => {
  /** The real process, which kills itself at a point. */
  async function workUntilItDies(at: string): Promise<void> {
    const main = join(import.meta.dirname, '../../src/main.ts');
    const env = {
      ...{ ...process.env, ...house.settings, NODE_ENV: 'test', CRASH_AT: at, LOG_LEVEL: 'fatal' },
      ...{ QUEUE_VISIBILITY_SECONDS: '1', DB_STATEMENT_TIMEOUT_MS: '400', DB_LOCK_TIMEOUT_MS: '400' },
      ...{ QUEUE_WAIT_SECONDS: '1', WORKER_RECEIVERS: '1', WORKER_BATCH: '10' },
    };
    const child = spawn(process.execPath, [main, 'work'], { env, stdio: 'inherit' });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
  }

  test.each(['recorded', 'before_acknowledge'])(
    'at %s, after its commit: the redelivery finds the order',
    async (at) => {
      const saleId = await newSale(house);
      const holds = await winners(saleId, 5);
      await send(house, holds);
      await workUntilItDies(at);
      expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 5 });
      const { waiting, inFlight } = await depth(house);
      expect(waiting + inFlight, 'nothing was acknowledged').toBe(5);

      await withWorker(house, async () => {
        expect(await untilEmpty(house)).toBe(0);
      });
      expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 5 });
      expect(await books(house, saleId)).toMatchObject({ sold: 5, held: 5 });
    },
  );

  test('and the order ended before the redelivery: it stays ended, and the unit came back once', async () => {
    const saleId = await newSale(house);
    const hold = await win(house, saleId, 'ann');
    await send(house, [hold]);
    await workUntilItDies('before_acknowledge');
    await cancelReservation(house.stores, hold);
    const anew = await win(house, saleId, 'ann');
    await withWorker(house, async () => {
      await send(house, [anew]);
      expect(await untilEmpty(house)).toBe(0);
    });
    expect(await statuses(saleId)).toEqual({ CANCELLED: 1, PENDING_PAYMENT: 1 });
    expect(await books(house, saleId)).toEqual({ sold: 1, stock: 9, held: 1, forfeited: 0 });
  });
});

test('work slower than the visibility timeout: two deliveries, one order', async () => {
  const saleId = await newSale(house);
  await send(house, [await win(house, saleId, 'ann')]);
  const [slow] = await receive(house); // a worker that froze with the message in its hand
  await withWorker(house, async () => {
    expect(await untilEmpty(house)).toBe(0);
  });
  expect(await recordHolds(house.stores, [parseMessage(slow?.Body)])).toEqual(['PENDING_PAYMENT']);
  expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 1 });
  expect(await books(house, saleId)).toMatchObject({ sold: 1, held: 1 });
});

test('a batch delete in which some entries fail is harmless: they come again and are known', async () => {
  const saleId = await newSale(house, { total: 20 });
  const holds = await winners(saleId, 20);
  let spoiled = 0;
  house.sqs.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const { Entries = [] } = args.input as { Entries?: { ReceiptHandle?: string }[] };
        for (const entry of commandName === 'DeleteMessageBatchCommand' ? Entries : []) {
          if (spoiled === 8) break;
          entry.ReceiptHandle = 'spoiled';
          spoiled += 1;
        }
        return next(args);
      },
    { step: 'initialize', name: 'spoil' },
  );
  await withWorker(house, async () => {
    await send(house, holds);
    expect(await untilEmpty(house)).toBe(0);
  });
  house.sqs.middlewareStack.remove('spoil');
  expect(spoiled).toBe(8);
  expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 20 });
});

describe('stopping', () => {
  test('while receives are pending: the message is done, or back in the queue at once', async () => {
    const saleId = await newSale(house);
    const hold = await win(house, saleId, 'ann');
    const late = { waitSeconds: 5, visibilitySeconds: 30 };
    const sendLate = async () => {
      await sleep(300); // the long polls are under way
      await send(house, [hold]);
    };
    await withWorker(house, sendLate, late);
    const done = (await orderOf(house, hold)) !== undefined;
    expect(await depth(house)).toMatchObject({ waiting: done ? 0 : 1, inFlight: 0 });
    await withWorker(house, () => untilEmpty(house));
    expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 1 });
  });

  test('with much to do: what was received is done and acknowledged, the rest is untouched', async () => {
    const saleId = await newSale(house, { total: 400 });
    await send(house, await winners(saleId, 400));
    const some = () => until(async () => (await recorded(saleId)) > 0);
    await withWorker(house, some, { receivers: 1, batch: 10, visibilitySeconds: 30 });
    const done = await recorded(saleId);
    expect(done).toBeLessThan(400);
    expect(await depth(house)).toMatchObject({ waiting: 400 - done, inFlight: 0 });
    await withWorker(house, () => untilEmpty(house));
    expect(await recorded(saleId)).toBe(400);
  });
});

test('a sale that stays locked: its message stays in hand, no other sale waits, and it is recorded in the end', async () => {
  const [saleId, other] = [await newSale(house), await newSale(house)];
  const [stuck, free] = [await win(house, saleId, 'ann'), await win(house, other, 'ann')];
  const impatient = house.another({ DB_LOCK_TIMEOUT_MS: '100' });
  await gateIsThere(impatient);
  const receives = countReceives(impatient);
  await house.db.query('begin');
  await house.db.query('select 1 from sale_stock where sale_id = $1 for update', [saleId]);
  await withWorker({ ...house, ...impatient }, async () => {
    await send(house, [stuck, free]);
    await until(async () => (await recorded(other)) === 1);
    await sleep(4000); // more than the back-off of a message that is given back
    expect(await orderOf(house, stuck)).toBeUndefined();
    await house.db.query('rollback');
    expect(await untilEmpty(house)).toBe(0);
  });
  expect([...receives.values()]).toEqual([1, 1]);
  await impatient.close();
  expect(await statuses(saleId)).toEqual({ PENDING_PAYMENT: 1 });
  expect(await statuses(other)).toEqual({ PENDING_PAYMENT: 1 });
});

test('the audit finds everything sound that was left behind', async () => {
  await expectSound(house);
});

/** Holds whose sender died before the queue had them, or before their mark was taken off. */
import { PurgeQueueCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { resend } from '../../src/keeper/resend.ts';
import { getSale } from '../../src/ledger/sales.ts';
import { enqueue } from '../../src/operations/enqueue.ts';
import { parseMessage } from '../../src/queue/message.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { books, newSale, openHouse, until, win, type House } from '../ledger/house.ts';
import { privateQueue } from '../support/servers.ts';
import { freshStores } from '../support/stores.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const OPTIONS = { graceMs: 1, batch: 100, timeoutMs: 5000 };

async function pass(saleId: string, but: Partial<typeof OPTIONS> = {}, of: House = house) {
  const sale = await getSale(of.pool, saleId);
  if (!sale) throw new Error('no sale');
  await new Promise((resolve) => setTimeout(resolve, 5)); // the grace is a millisecond of Redis' clock
  return resend(of.stores, sale, { ...OPTIONS, ...but });
}

/** Everything that is in the queue now. */
async function queued(): Promise<Hold[]> {
  const holds: Hold[] = [];
  for (;;) {
    const command = new ReceiveMessageCommand({ QueueUrl: house.queueUrl, MaxNumberOfMessages: 10 });
    const { Messages = [] } = await house.sqs.send(command);
    if (Messages.length === 0) return holds;
    holds.push(...Messages.map(({ Body }) => parseMessage(Body)));
  }
}
const unqueued = async (saleId: string) => (await house.gate.figures(saleId))?.unqueued;

test('a hold whose sender died before the queue had it is sent, and its mark taken off', async () => {
  const saleId = await newSale(house);
  const hold = await win(house, saleId, 'ann');
  expect(await pass(saleId, { graceMs: 60_000 })).toEqual({ resent: 0, failed: 0 }); // the sender may still be at it
  expect(await pass(saleId)).toEqual({ resent: 1, failed: 0 });
  expect(await queued()).toEqual([hold]);
  await until(async () => (await unqueued(saleId)) === 0);
  expect(await pass(saleId)).toEqual({ resent: 0, failed: 0 });
});

test('a hold whose sender died before it took the mark off is sent twice, which is one order', async () => {
  const saleId = await newSale(house);
  const hold = await win(house, saleId, 'ann');
  await house.stores.producer.send(hold, performance.now() + 5000);
  expect(await pass(saleId)).toEqual({ resent: 1, failed: 0 });
  const twice = await queued();
  expect(twice).toEqual([hold, hold]);
  await recordHolds(house.stores, twice);
  expect(await books(house, saleId)).toMatchObject({ sold: 1, held: 1 });
});

test('several keepers at once: each hold is sent once per grace', async () => {
  const saleId = await newSale(house, { total: 100 });
  const holds = await Promise.all(Array.from({ length: 100 }, (_, n) => win(house, saleId, `b-${n}`)));
  for (const { userId } of holds) await house.redis.zincrby(`{sale:${saleId}}:unqueued`, -120_000, userId);
  const done = await Promise.all(Array.from({ length: 5 }, () => pass(saleId, { graceMs: 60_000, batch: 30 })));
  expect(done.reduce((sum, { resent }) => sum + resent, 0)).toBe(100);
  const ids = (await queued()).map(({ reservationId }) => reservationId);
  expect(ids.sort()).toEqual(holds.map(({ reservationId }) => reservationId).sort());
});

test('a queue that is away: told, the mark stays, and after the grace it is tried anew', async () => {
  const [fresh, queue] = await Promise.all([freshStores(), privateQueue()]);
  const own = await openHouse({ fresh: { ...fresh, ...queue, env: { ...fresh.env, ...queue.env } } });
  const saleId = await newSale(own);
  const hold = await win(own, saleId, 'ann');
  queue.kill('SIGKILL');
  await queue.exited;
  expect(await pass(saleId, { timeoutMs: 1500 }, own)).toEqual({ resent: 0, failed: 1 });
  expect(own.log.filter(({ level }) => level === 40)).toHaveLength(1);
  expect((await own.gate.figures(saleId))?.unqueued).toBe(1);

  await queue.restart();
  expect(await pass(saleId, {}, own)).toEqual({ resent: 1, failed: 0 });
  const { Messages = [] } = await own.sqs.send(new ReceiveMessageCommand({ QueueUrl: own.queueUrl }));
  expect(Messages.map(({ Body }) => parseMessage(Body))).toEqual([hold]);
  await own.close();
  await fresh.drop();
});

test('a gate that is not loaded has nothing to send', async () => {
  const saleId = await newSale(house);
  await win(house, saleId, 'ann');
  await house.gate.remove(saleId);
  expect(await pass(saleId)).toEqual({ resent: 0, failed: 0 });
});

test('the queue forgets everything: unmarked holds stay for the full pass, marked ones are sent', async () => {
  const saleId = await newSale(house);
  const [sent, unsent] = [await win(house, saleId, 'ann'), await win(house, saleId, 'bob')];
  await enqueue(house.stores, sent, performance.now() + 5000);
  await until(async () => (await unqueued(saleId)) === 1);
  await house.sqs.send(new PurgeQueueCommand({ QueueUrl: house.queueUrl }));
  expect(await pass(saleId)).toEqual({ resent: 1, failed: 0 });
  expect(await queued()).toEqual([unsent]);
});

/** A queue that stands still, or brings everything twice, in another order, and with strangers among it. */
import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { formatMessage } from '../../src/queue/message.ts';
import { queueDepth } from '../../src/queue/depth.ts';
import { workerOptions } from '../../src/wiring.ts';
import { startWorker } from '../../src/worker/worker.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { privateQueue, type Server } from '../support/servers.ts';
import { expectAnswered, expectNothingLost, underFire } from './fire.ts';
import * as h from './house.ts';

/** Fewer than press at once, so that the bound is reached while the queue stands still. */
const PENDING = 20;

let server: Server;
let stores: Stores;
let house: h.House;
beforeAll(async () => {
  const queue = await privateQueue({ visibilitySeconds: 2 });
  server = queue;
  stores = await freshStores();
  house = await h.openHouse({
    fresh: { ...stores, ...queue, env: { ...stores.env, ...queue.env } },
    env: { QUEUE_PENDING: String(PENDING), QUEUE_SENDS_IN_FLIGHT: '1', GATE_PENDING: String(PENDING) },
  });
});
afterAll(async () => {
  await h.closeHouse(house);
  await stores.drop();
});

test('frozen while buyers press: a named 503 in time, and what waits is bounded; each hold is sent once it goes on', async () => {
  const saleId = await h.newSale(house, { total: 100_000 });
  const { answers, longest } = await underFire(house, saleId, async (fire) => {
    await fire.told('ok');
    server.kill('SIGSTOP');
    await fire.told('queue_unavailable');
    await fire.more(2 * PENDING);
    server.kill('SIGCONT');
    await fire.told('ok', 'dup');
  });
  expectAnswered(house, answers, ['queue_unavailable', 'overloaded']);
  expect(longest.batcher).toBeLessThanOrEqual(PENDING);
  expect(
    answers.map(({ word }) => word),
    'more than may wait',
  ).toContain('overloaded');
  await expectNothingLost(house, saleId, answers);
});

test('each message three times, in any order, among strangers: one order each; strangers end as dead letters', async () => {
  const saleId = await h.newSale(house, { total: 100 });
  const holds: Hold[] = [];
  for (let n = 0; n < 20; n += 1) {
    const hold = await h.win(house, saleId, `buyer-${n}`, 1 + (n % 3));
    await house.gate.queued(saleId, hold);
    holds.push(hold);
  }
  const [one] = holds;
  if (!one) throw new Error('nobody won');
  const strangers = [
    JSON.stringify({ ...one, v: 2 }), // a newer version, of a producer that was deployed first
    JSON.stringify({ v: 1, ...one, saleId: 'no-such-sale', reservationId: crypto.randomUUID() }),
    '{"v":1',
  ];
  const bodies = [...strangers, ...holds, ...holds, ...holds].map((each) =>
    typeof each === 'string' ? each : formatMessage(each),
  );
  for (const body of shuffled(bodies)) {
    await house.sqs.send(new SendMessageCommand({ QueueUrl: house.queueUrl, MessageBody: body }));
  }
  const worker = startWorker(house.stores, house.sqs, workerOptions(house.config));
  const depth = () => queueDepth(house.sqs, house.queueUrl, 2000);
  try {
    await h.until(async () => {
      const { waiting, inFlight } = await depth();
      return waiting + inFlight <= strangers.length;
    });
    for (const hold of holds) expect(await h.orderOf(house, hold)).toMatchObject({ status: 'PENDING_PAYMENT' });
    const units = holds.reduce((sum, { qty }) => sum + qty, 0);
    expect(await h.books(house, saleId)).toMatchObject({ sold: units, held: units, stock: 100 - units });
    // Five receives, two seconds apart.
    await h.until(async () => (await depth()).deadLetters === strangers.length, 30_000);
  } finally {
    await worker.stop();
  }
  expect(await h.messages(house)).toBe(0);
  expect(await h.rejected(house)).toEqual([]);
  await h.expectSettled(house);
}, 60_000);

function shuffled<T>(items: T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

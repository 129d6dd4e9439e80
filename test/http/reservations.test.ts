/** A buyer's reservation through its life: QUEUED, recorded, paid, expired, cancelled, rejected; and given up. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { privateRedis } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import {
  ask,
  asShop,
  deliver,
  eventOf,
  expectProblem,
  gateState,
  newId,
  press,
  putSale,
  record,
  reservationUrl,
} from './api.ts';
import { shortLimits, testApi, win, work, type TestApi, type Won } from './api.ts';

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const look = async (won: Won) => (await ask(api, reservationUrl(won))).json<Record<string, unknown>>();
const giveUp = (won: Won, more: Partial<Won> = {}) =>
  ask(api, reservationUrl({ ...won, ...more }), { method: 'DELETE' });

test('QUEUED before the worker ran, then PENDING_PAYMENT, then PAID: always with what was promised', async () => {
  const saleId = await putSale(api);
  const { outcome: _, ...promised } = await win(api, saleId, 'u', 2);
  const won = promised as Won;
  expect(await look(won)).toEqual({ ...promised, status: 'QUEUED' });
  await record(api, won);
  expect(await look(won)).toEqual({ ...promised, status: 'PENDING_PAYMENT' });
  await putSale(api, { price: { amount: 1, currency: 'EUR' }, holdSeconds: 1 }, saleId);
  await deliver(api, eventOf(won));
  expect(await look(won)).toEqual({ ...promised, status: 'PAID' });
  expect((await win(api, saleId, 'u')).outcome).toBe('dup');
});

test('the id in capitals is the same reservation', async () => {
  const won = await win(api, await putSale(api), 'u');
  expect(await look({ ...won, reservationId: won.reservationId.toUpperCase() })).toMatchObject({ status: 'QUEUED' });
});

test('EXPIRED: its unit is free again, its buyer may win again, and money that comes late is owed back, visibly', async () => {
  const saleId = await putSale(api, { total: 1, holdSeconds: 1 });
  const won = await win(api, saleId, 'u');
  await record(api, won);
  await expect.poll(async () => (await sweep(api.wired.stores, 100)).expired, { timeout: 15_000 }).toBe(1);
  expect(await look(won)).toMatchObject({ status: 'EXPIRED' });
  expect(await gateState(api, saleId)).toMatchObject({ stock: '1', held: '0' });
  expect((await deliver(api, eventOf(won))).json()).toMatchObject({ outcome: 'refund_owed: expired' });
  expect(await look(won)).toMatchObject({ status: 'EXPIRED', refund: 'PENDING' });
  const again = await win(api, saleId, 'u');
  expect(again).toMatchObject({ outcome: 'ok' });
  expect(again.reservationId).not.toBe(won.reservationId);
  expect(await look(won)).toMatchObject({ status: 'EXPIRED' }); // still there to be asked for
});

test('REJECTED with its reason: the gate had promised what the ledger does not have', async () => {
  const saleId = await putSale(api, { total: 1 });
  const [, , , , sale] = gateKeys(saleId);
  const [stock] = gateKeys(saleId);
  await api.redis.incrby(stock, 1); // a gate that is too generous, as after a failover that forgot a winner
  await api.redis.hincrby(sale, 'total', 1);
  const both = [await win(api, saleId, 'first'), await win(api, saleId, 'second')];
  await record(api, ...both);
  const seen = await Promise.all(both.map(look));
  expect(seen.map(({ status }) => status).sort()).toEqual(['PENDING_PAYMENT', 'REJECTED']);
  const refused = both.find((_, n) => seen[n]?.['status'] === 'REJECTED') as Won;
  await expect.poll(() => look(refused), { timeout: 15_000 }).toMatchObject({ status: 'REJECTED', reason: 'no_room' });
  await deliver(api, eventOf(refused));
  expect(await look(refused)).toMatchObject({ status: 'REJECTED', reason: 'no_room', refund: 'PENDING' });
});

test('another buyer’s, another sale’s, or nobody’s: 404, for GET and DELETE, queued or recorded', async () => {
  const saleId = await putSale(api);
  const otherSale = await putSale(api);
  const won = await win(api, saleId, 'u');
  const strangers: Partial<Won>[] = [
    { userId: 'somebody-else' },
    { userId: 'U' },
    { saleId: otherSale },
    { saleId: newId() },
    { reservationId: randomUUID() },
  ];
  const allAre404 = async () => {
    for (const stranger of strangers) {
      expectProblem(await ask(api, reservationUrl({ ...won, ...stranger })), 'reservation_not_found');
      expectProblem(await giveUp(won, stranger), 'reservation_not_found');
    }
  };
  await allAre404();
  await record(api, won);
  await allAre404();
  expect(await look(won)).toMatchObject({ status: 'PENDING_PAYMENT' });
});

test('given up once it is recorded: 204, repeatable, one unit back once', async () => {
  const saleId = await putSale(api, { total: 1 });
  const won = await win(api, saleId, 'u');
  await record(api, won);
  const answers = await Promise.all(Array.from({ length: 10 }, () => giveUp(won)));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(10).fill(204));
  expect(answers.map(({ body }) => body)).toEqual(Array(10).fill(''));
  expect(await look(won)).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer' });
  expect(await gateState(api, saleId)).toMatchObject({ stock: '1', held: '0', buyers: 0 });
  expect((await win(api, saleId, 'u')).outcome).toBe('ok');
  expect((await giveUp(won)).statusCode).toBe(204); // late, and of no effect on the new hold
  expect(await gateState(api, saleId)).toMatchObject({ stock: '0', held: '1', buyers: 1 });
});

test('given up while it is still in the queue: CANCELLED stays, and the unit is sold once', async () => {
  const saleId = await putSale(api, { total: 1 });
  const won = await win(api, saleId, 'u');
  expect((await giveUp(won)).statusCode).toBe(204);
  expect(await look(won)).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer' });
  const next = await win(api, saleId, 'next');
  await record(api, next);
  // The cancelled one’s message was before it in the queue.
  await work(api, async () => {
    const { waiting, inFlight } = await queueDepthOf();
    return waiting + inFlight === 0;
  });
  expect(await look(won)).toMatchObject({ status: 'CANCELLED' });
  expect(await look(next)).toMatchObject({ status: 'PENDING_PAYMENT' });
  expect(await gateState(api, saleId)).toMatchObject({ stock: '0', held: '1' });
  const ledger = await api.db.query('select sold from sale_stock where sale_id = $1', [saleId]);
  expect(ledger.rows).toEqual([{ sold: 1 }]);
});

test('given up by a client that names a content type with every request: 204', async () => {
  const won = await win(api, await putSale(api), 'u');
  const headers = { ...asShop, 'content-type': 'application/json' };
  expect((await ask(api, reservationUrl(won), { method: 'DELETE', headers })).statusCode).toBe(204);
});

test('paid: 409 already_paid, also when payment and cancel come at once: never both', async () => {
  const saleId = await putSale(api, { total: 100 });
  const paid = await win(api, saleId, 'paid');
  const racing = await Promise.all(Array.from({ length: 20 }, (_, n) => win(api, saleId, `u-${n}`)));
  await record(api, paid, ...racing);
  await deliver(api, eventOf(paid));
  expectProblem(await giveUp(paid), 'already_paid');
  expect(await look(paid)).toMatchObject({ status: 'PAID' });
  for (const won of racing) {
    const [gone] = await Promise.all([giveUp(won), deliver(api, eventOf(won))]);
    const { status, refund } = await look(won);
    if (gone.statusCode === 204) expect([status, refund]).toEqual(['CANCELLED', 'PENDING']);
    else {
      expectProblem(gone, 'already_paid');
      expect([status, refund]).toEqual(['PAID', undefined]);
    }
  }
});

test('Redis away: what is recorded is still shown and can be given up; what is not is 503, not 404', async () => {
  const [redis, fresh] = await Promise.all([privateRedis(), freshStores()]);
  const own = await testApi({ ...fresh.env, REDIS_URL: redis.url, ...shortLimits });
  try {
    const saleId = await putSale(own);
    const [recorded, queued] = [await win(own, saleId, 'a'), await win(own, saleId, 'b')];
    await record(own, recorded, queued);
    const unrecorded = { ...recorded, reservationId: randomUUID() };
    redis.kill('SIGKILL');
    await redis.exited;
    expect((await ask(own, reservationUrl(recorded))).json()).toMatchObject({ status: 'PENDING_PAYMENT' });
    expectProblem(await ask(own, reservationUrl(unrecorded)), 'gate_unavailable');
    expect((await ask(own, reservationUrl(queued), { method: 'DELETE' })).statusCode).toBe(204);
    expect((await ask(own, reservationUrl(queued))).json()).toMatchObject({ status: 'CANCELLED' });
    expectProblem(await press(own, saleId, 'a'), 'gate_unavailable');
    await redis.restart();
    // The keeper's pass gives the unit back that was owed to the gate meanwhile.
    await expect.poll(async () => (await sweep(own.wired.stores, 100)).waiting, { timeout: 15_000 }).toBe(0);
    expect(await gateState(own, saleId)).toMatchObject({ stock: '9', held: '1', buyers: 1 });
  } finally {
    await own.close();
    await fresh.drop();
  }
});

async function queueDepthOf() {
  const { queueDepth } = await import('../../src/queue/depth.ts');
  return queueDepth(api.wired.sqs, api.config.SQS_QUEUE_URL, 1000);
}

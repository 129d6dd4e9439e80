/** Deliveries: at least once, under one id, to shops that are down, slow, rude or gone; several keepers at once. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { SCHEDULE_MS } from '../../src/domain/webhook.ts';
import {
  claimDeliveries,
  giveBackDelivery,
  markNotDelivered,
  pruneDeliveries,
  redeliver,
} from '../../src/ledger/deliveries.ts';
import { deleteEndpoint, getEndpoint, putEndpoint, rotateSecret } from '../../src/ledger/webhooks.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { event, newSale, win } from '../ledger/house.ts';
import * as h from './house.ts';

let house: h.House;
let shop: h.Receiver;
let saleId: string;
const keepers: { stop: () => Promise<void> }[] = [];
beforeAll(async () => {
  house = await h.openHouse();
});
afterAll(() => house.close());
beforeEach(async () => {
  shop = await h.openReceiver();
  saleId = await newSale(house, { total: 100 });
  await house.db.query('delete from webhook_endpoints; delete from webhook_deliveries');
  await h.endpointAt(house, 'shop', shop);
  house.log.length = 0;
});
afterEach(async () => {
  for (const keeper of keepers.splice(0)) await keeper.stop();
  await shop.close();
});

/** That many events, for whoever wants them. */
async function paidOrders(count: number): Promise<Hold[]> {
  const holds = await Promise.all(Array.from({ length: count }, (_, n) => win(house, saleId, `u-${n}-${Date.now()}`)));
  await recordHolds(house.stores, holds);
  for (const hold of holds) await applyEvent(house.pool, event(hold, 'payment.succeeded'));
  return holds;
}
function keeper(but: Parameters<typeof h.courier>[1] = {}) {
  const started = h.courier(house, but);
  keepers.push(started);
  return started;
}
const rows = () => h.outbox(house);
/** How attempts ended, by the log. */
const results = () => house.log.map(({ msg }) => msg).filter((msg) => /^webhook \w+$/.test(msg));
const all = (status: string) => async () => (await rows()).every((row) => row.status === status);
const attempted = (times: number) => async () => (await rows()).every((row) => row.attempts === times && !row.claimed);

test('an endpoint that is down for a while gets everything later, under the same ids, each once', async () => {
  await paidOrders(3);
  const { port } = new URL(shop.url);
  await shop.close();
  keeper();
  await h.until(attempted(1));
  for (const row of await rows()) {
    expect(row).toMatchObject({
      status: 'PENDING',
      lastStatus: null,
      lastError: expect.stringMatching(/ECONNREFUSED/) as string,
    });
    expect(row.pause).toBeGreaterThanOrEqual(4.4);
    expect(row.pause).toBeLessThanOrEqual(5.6);
  }
  const { secret } = shop;
  shop = Object.assign(await h.openReceiver(Number(port)), { secret });
  await h.letTimePass(house, 6000);
  await h.until(all('DELIVERED'));
  expect(shop.calls.map(({ id }) => id).sort()).toEqual((await rows()).map(({ eventId }) => eventId).sort());
  expect(results()).toEqual([
    ...Array<string>(3).fill('webhook not_delivered'),
    ...Array<string>(3).fill('webhook delivered'),
  ]);
});

test('500: tried again by the schedule, with the same id and bytes, and given up after the last attempt', async () => {
  await paidOrders(1);
  shop.answer = h.status(500);
  keeper();
  for (let n = 1; n < SCHEDULE_MS.length; n += 1) {
    await h.until(attempted(n));
    const [row] = await rows();
    const pause = (SCHEDULE_MS[n] ?? 0) / 1000;
    expect(row).toMatchObject({
      status: 'PENDING',
      lastStatus: 500,
      lastError: 'HTTP 500',
      lastAnswer: 'a 500 of the tests',
    });
    expect(row?.pause).toBeGreaterThanOrEqual(pause * 0.89);
    expect(row?.pause).toBeLessThanOrEqual(pause * 1.11);
    await h.letTimePass(house, pause * 1.11 * 1000);
  }
  await h.until(all('FAILED'));
  expect(shop.calls).toHaveLength(SCHEDULE_MS.length);
  expect(new Set(shop.calls.map(({ id, body }) => id + body)).size).toBe(1);
  expect(house.log.filter(({ level }) => level === 50)).toMatchObject([
    { msg: 'a webhook is given up after its last attempt' },
  ]);
});

test('redelivery begins anew, under the same id, also of what was delivered or given up', async () => {
  await paidOrders(1);
  keeper();
  await h.until(all('DELIVERED'));
  const [row] = await rows();
  for (const from of ['DELIVERED', 'FAILED']) {
    await house.db.query('update webhook_deliveries set status = $1, attempts = 10', [from]);
    expect(await redeliver(house.pool, 'shop', row?.eventId ?? '')).toMatchObject({ status: 'PENDING', attempts: 0 });
    await h.until(all('DELIVERED'));
    expect((await rows())[0]?.attempts).toBe(1);
  }
  expect(shop.calls.map(({ id }) => id)).toEqual(Array(3).fill(row?.eventId));
});

test('410: the endpoint is inactive from then on; made active again, it gets what waited', async () => {
  await paidOrders(1);
  shop.answer = h.status(410);
  keeper();
  await h.until(async () => (await getEndpoint(house.pool, 'shop'))?.active === false);
  expect((await getEndpoint(house.pool, 'shop'))?.goneAt).toBeTypeOf('number');
  await h.until(attempted(1));
  await paidOrders(1); // while it is inactive, nobody wants this
  await h.letTimePass(house, 6000);
  expect(await rows()).toMatchObject([{ status: 'PENDING', attempts: 1, lastStatus: 410 }]);
  shop.answer = h.ok;
  await h.endpointAt(house, 'shop', shop);
  await h.until(all('DELIVERED'));
  expect(await getEndpoint(house.pool, 'shop')).toMatchObject({ active: true, goneAt: null });
  expect(shop.calls).toHaveLength(2);
});

test.each([429, 503])('%i with Retry-After: the whole endpoint is left alone for that long', async (code) => {
  await paidOrders(1);
  shop.answer = h.status(code, { 'retry-after': '120' });
  keeper();
  await h.until(attempted(1));
  expect((await rows())[0]?.pause).toBeGreaterThanOrEqual(119);
  shop.answer = h.ok;
  await paidOrders(2);
  await h.letTimePass(house, 100_000);
  const untouched = await h.openReceiver();
  await h.endpointAt(house, 'other', untouched);
  await paidOrders(1);
  await h.until(() => untouched.calls.length === 1); // the keeper has looked since
  await untouched.close();
  expect(shop.calls).toHaveLength(1);
  await h.letTimePass(house, 21_000);
  await h.until(all('DELIVERED'));
  expect(shop.calls).toHaveLength(5);
});

test('Retry-After of another answer is not heeded', async () => {
  await paidOrders(1);
  shop.answer = h.status(500, { 'retry-after': '120' });
  keeper();
  await h.until(attempted(1));
  expect((await getEndpoint(house.pool, 'shop'))?.holdUntil).toBeNull();
  expect((await rows())[0]?.pause).toBeLessThan(6);
});

test('a redirect is not followed and counts as failed', async () => {
  const elsewhere = await h.openReceiver();
  await paidOrders(1);
  shop.answer = h.status(307, { location: elsewhere.url });
  keeper();
  await h.until(attempted(1));
  expect(await rows()).toMatchObject([{ lastStatus: 307, lastError: 'HTTP 307: redirects are not followed' }]);
  expect(elsewhere.calls.length + elsewhere.refused.length).toBe(0);
  await elsewhere.close();
});

test('one that is slow holds up nobody else, and has no more calls at once than it may', async () => {
  const slow = await h.openReceiver();
  slow.answer = h.silent;
  await h.endpointAt(house, 'slow', slow);
  keeper({ inFlight: 2, timeoutMs: 10_000 });
  await paidOrders(7);
  await h.until(() => shop.calls.length === 7);
  await h.until(() => slow.busy.now === 2);
  expect(slow.busy.most).toBe(2);
  await slow.close();
});

test('a call that takes long holds up one lane: the others go on, also with what comes later', async () => {
  const [first] = await paidOrders(1);
  shop.answer = (call, response) => {
    if (call.id !== `${first?.reservationId}_paid`) h.ok(call, response);
  };
  keeper({ inFlight: 2 });
  await h.until(() => shop.busy.now === 1);
  await paidOrders(5);
  await h.until(async () => (await rows()).filter((row) => row.status === 'DELIVERED').length === 5);
  expect(shop.busy).toEqual({ now: 1, most: 2 });
});

test('a call that takes too long is ended, and tried again', async () => {
  await paidOrders(1);
  shop.answer = h.silent;
  keeper({ timeoutMs: 200 });
  await h.until(attempted(1));
  expect((await rows())[0]?.lastError).toMatch(/timeout/i);
  // An answer that begins and never ends: its status counts.
  shop.answer = (_, response) => void response.writeHead(200).write('and so');
  await h.letTimePass(house, 6000);
  await h.until(all('DELIVERED'));
  expect((await rows())[0]?.lastAnswer).toMatch(/^and so … /);
});

test('of an answer without end the beginning is kept, printable', async () => {
  await paidOrders(1);
  let sent = 0;
  shop.answer = (_, response) => {
    response.writeHead(500);
    const more = (): void => {
      if (response.destroyed || sent > 50_000_000) return;
      sent += 65_536;
      if (response.write(`\0\u001b[31m€\n`.padEnd(65_536, 'x'))) setImmediate(more);
      else response.once('drain', more);
    };
    more();
  };
  keeper();
  await h.until(attempted(1));
  const [row] = await rows();
  expect(row?.lastAnswer).toBe(`\uFFFD\uFFFD[31m€\uFFFD`.padEnd(500, 'x'));
  expect(sent, 'it was not read to its end').toBeLessThan(50_000_000);
});

test('two keepers: nothing is sent twice', async () => {
  await paidOrders(20);
  shop.answer = (_, response) => void setTimeout(() => response.writeHead(200).end(), 5);
  for (let n = 0; n < 3; n += 1) keeper({ intervalMs: 1 });
  await h.until(all('DELIVERED'));
  expect(shop.calls).toHaveLength(20);
  expect(new Set(shop.calls.map(({ id }) => id)).size).toBe(20);
});

test('a claim ends by itself; whoever comes back late with a failure changes nothing then', async () => {
  await paidOrders(1);
  const { rows: found } = await house.db.query<{ key: string }>('select endpoint_key as key from webhook_endpoints');
  const key = Number(found[0]?.key);
  const claim = () => claimDeliveries(house.pool, key, 5, 60_000);
  const [frozen] = await claim();
  expect(await claim()).toEqual([]);
  await redeliver(house.pool, 'shop', frozen?.eventId ?? '');
  expect(await claim(), 'redelivered while it is being sent').toEqual([]);
  await h.letTimePass(house, 61_000);
  const [second] = await claim();
  await h.letTimePass(house, 61_000);
  const [third] = await claim();
  expect([second?.attempts, third?.attempts, third?.eventId]).toEqual([1, 2, frozen?.eventId]);
  if (!second || !third) throw new Error('no claim');
  const failure = { status: 500, answer: null, error: 'HTTP 500' };
  await markNotDelivered(house.pool, second, failure, undefined);
  await giveBackDelivery(house.pool, second);
  expect(await rows()).toMatchObject([{ status: 'PENDING', attempts: 2, claimed: true }]);
  await giveBackDelivery(house.pool, third);
  expect(await rows()).toMatchObject([{ status: 'PENDING', attempts: 1, claimed: false }]);
});

test('a keeper that stops cuts off what does not end, and does not count it', { timeout: 30_000 }, async () => {
  await paidOrders(1);
  shop.answer = h.silent;
  const { stop } = h.courier(house);
  await h.until(() => shop.calls.length === 1);
  await stop();
  expect(results()).toEqual(['webhook cut_off']);
  expect(await rows()).toMatchObject([{ status: 'PENDING', attempts: 0, claimed: false }]);
});

test('rotation: for a while events carry the signatures of both secrets, then of the new one', async () => {
  const old = shop.secret;
  const rotated = await rotateSecret(house.pool, 'shop', 3_600_000);
  expect(rotated?.secret).not.toBe(old);
  expect(rotated?.endpoint.oldSecretUntil).toBeGreaterThan(Date.now() + 3_500_000);
  keeper();
  for (const secret of [old, rotated?.secret ?? '']) {
    shop.secret = secret;
    await paidOrders(1);
    await h.until(all('DELIVERED'));
    expect(shop.calls.at(-1)?.signatures).toHaveLength(2);
  }
  await house.db.query(`update webhook_secrets set until = until - interval '1 hour'`);
  await paidOrders(1);
  await h.until(all('DELIVERED'));
  expect(shop.calls.at(-1)?.signatures).toHaveLength(1);
  shop.secret = old;
  await paidOrders(1);
  await h.until(() => shop.refused.length > 0);
});

test('one that is deleted gets nothing any more, nor does its successor of that name', async () => {
  await paidOrders(1);
  expect(await deleteEndpoint(house.pool, 'shop')).toBe(true);
  await h.endpointAt(house, 'shop', shop);
  keeper();
  await paidOrders(1);
  await h.until(() => shop.calls.length === 1);
  expect((await rows()).map(({ endpoint, status }) => [endpoint, status])).toEqual([
    [null, 'PENDING'],
    ['shop', expect.any(String)],
  ]);
});

test('secrets are in no log', async () => {
  await paidOrders(1);
  keeper();
  await h.until(all('DELIVERED'));
  await rotateSecret(house.pool, 'shop', 1000);
  expect(house.log.length).toBeGreaterThan(0);
  expect(JSON.stringify(house.log)).not.toMatch(/whsec_/);
});

test('what is old is pruned, what is still to be sent is not', async () => {
  await putEndpoint(house.pool, 'off', { url: shop.url, events: ['reservation.paid'], active: true });
  await paidOrders(3);
  const name = (n: number) =>
    `(select event_id from webhook_deliveries group by 1 order by min(delivery_no) offset ${n} limit 1)`;
  await house.db.query(`
    update webhook_endpoints set active = false where endpoint_id = 'off';
    update webhook_endpoints set complete_since = now() - interval '9 days';
    update webhook_deliveries set status = 'DELIVERED' where event_id = ${name(0)};
    update webhook_deliveries set status = 'FAILED' where event_id = ${name(1)}`);
  expect(await pruneDeliveries(house.pool, 3_600_000, 100)).toBe(0);
  await h.letTimePass(house, 7_200_000);
  expect(await pruneDeliveries(house.pool, 3_600_000, 2)).toBe(2);
  expect(await pruneDeliveries(house.pool, 3_600_000, 100)).toBe(3);
  expect(await rows()).toMatchObject([{ endpoint: 'shop', status: 'PENDING' }]);
  const { rows: since } = await house.db.query<{ hours: number }>(
    'select extract(epoch from now() - complete_since)::float8 / 3600 as hours from webhook_endpoints',
  );
  for (const { hours } of since) expect(hours).toBeLessThan(1.1); // what the log has is complete from here on only
});

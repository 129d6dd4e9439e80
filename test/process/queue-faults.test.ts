/** The queue away, slow, or taking a part only: 503 with the hold kept, and the same press again finds it. */
import { PurgeQueueCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { privateQueue } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, expectProblem, gateState, press, putSale, record, testApi, win, type TestApi } from '../http/api.ts';
import { shortLimits, type Won } from '../http/api.ts';
import { queueProxy, type QueueProxy } from './queue-proxy.ts';

vi.setConfig({ testTimeout: 60_000 }); // it waits for several time limits

let stores: Stores;
let queue: Awaited<ReturnType<typeof privateQueue>>;
let proxy: QueueProxy;
let api: TestApi;
beforeAll(async () => {
  [stores, queue] = await Promise.all([freshStores(), privateQueue()]);
  proxy = await queueProxy(queue.env);
  api = await testApi({ ...stores.env, ...proxy.env, ...shortLimits });
});
afterEach(async () => {
  proxy.delay.clear();
  proxy.rewrite.clear();
  await api.wired.sqs.send(new PurgeQueueCommand({ QueueUrl: api.config.SQS_QUEUE_URL }));
});
afterAll(async () => {
  await api.close();
  await proxy.close();
  await stores.drop();
});

const patience = () => api.config.REQUEST_DEADLINE_MS * 2.5;

/** All that is in the queue, by reservation id. */
async function messages(): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const command = new ReceiveMessageCommand({ QueueUrl: api.config.SQS_QUEUE_URL, MaxNumberOfMessages: 10 });
    const { Messages = [] } = await api.wired.sqs.send(command);
    if (Messages.length === 0) return ids;
    ids.push(...Messages.map(({ Body = '' }) => (JSON.parse(Body) as Won).reservationId));
  }
}

test('away: 503 queue_unavailable, the hold is kept; back: the same buyer’s retry gets it, once', async () => {
  const saleId = await putSale(api, { total: 3 });
  queue.kill('SIGKILL');
  await queue.exited;
  const started = performance.now();
  expectProblem(await press(api, saleId, 'u', 2), 'queue_unavailable');
  expectProblem(await press(api, saleId, 'u', 2), 'queue_unavailable');
  expect(performance.now() - started).toBeLessThan(2 * patience());
  expect(await gateState(api, saleId)).toMatchObject({ stock: '1', held: '2', buyers: 1 });
  const figures = await admin(api, 'GET', `/${saleId}`);
  expect(figures.json()).toMatchObject({
    queue: null,
    gate: { held: 2, unqueued: 1 },
    away: [expect.stringMatching(/^queue: .+/) as string],
  });
  expectProblem(await press(api, saleId, 'other', 2), 'sold_out'); // a refusal needs no queue

  await queue.restart();
  const won = await win(api, saleId, 'u', 2);
  expect(won).toMatchObject({ outcome: 'dup', qty: 2 });
  await record(api, won);
  await expect.poll(() => api.redis.zcard(`{sale:${saleId}}:unqueued`), { timeout: 15_000 }).toBe(0);
  expect(await gateState(api, saleId)).toMatchObject({ stock: '1', held: '2', buyers: 1 });
});

test('frozen: every request has its answer in time', async () => {
  const saleId = await putSale(api, { total: 100 });
  queue.kill('SIGSTOP');
  try {
    const started = performance.now();
    const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => press(api, saleId, `u-${n}`)));
    expect(performance.now() - started).toBeLessThan(patience());
    for (const answer of answers) {
      expect([409, 503]).toContain(answer.statusCode);
      const { code } = answer.json<{ code: 'sold_out' }>();
      expect(['sold_out', 'queue_unavailable', 'overloaded']).toContain(code);
      expectProblem(answer, code);
    }
    expect(answers.filter(({ statusCode }) => statusCode === 409)).toHaveLength(200);
  } finally {
    queue.kill('SIGCONT');
  }
  const holders = await api.redis.smembers(`{sale:${saleId}}:buyers`);
  expect(holders).toHaveLength(100);
  const again = await Promise.all(holders.map((userId) => win(api, saleId, userId)));
  expect(again.every(({ outcome }) => outcome === 'dup')).toBe(true);
  expect(new Set(await messages())).toEqual(new Set(again.map(({ reservationId }) => reservationId)));
});

test('slow: those whose turn comes in time win, the rest are told to come again; nobody gets a 500', async () => {
  const saleId = await putSale(api, { total: 400 });
  proxy.delay.set('SendMessageBatch', 900); // eight calls of ten at once: the third round begins at 1.8 of 2 seconds
  const started = performance.now();
  const answers = await Promise.all(Array.from({ length: 400 }, (_, n) => press(api, saleId, `u-${n}`)));
  expect(performance.now() - started).toBeLessThan(patience());
  const won = answers.filter(({ statusCode }) => statusCode === 202);
  expect(won.length).toBeGreaterThan(0);
  const refused = answers.filter(({ statusCode }) => statusCode !== 202);
  expect(refused.length).toBeGreaterThan(0);
  for (const answer of refused) {
    const { code } = answer.json<{ code: 'overloaded' }>();
    expect(['overloaded', 'queue_unavailable']).toContain(code);
    expectProblem(answer, code);
  }
  proxy.delay.clear();
  const sent = new Set(await messages());
  for (const each of won) expect(sent).toContain(each.json<Won>().reservationId);
});

test('a batch answered 200 with some entries failed: exactly those are refused, and their retry is sent', async () => {
  const saleId = await putSale(api, { total: 10 });
  const refuse = new Set(['u-2', 'u-5', 'u-6']);
  const users = Array.from({ length: 10 }, (_, n) => `u-${n}`);
  type Entry = { Id: string; MessageBody: string };
  proxy.rewrite.set('SendMessageBatch', ({ Successful = [] }, { Entries = [] }) => {
    const bad = (Entries as Entry[])
      .filter(({ MessageBody }) => refuse.has((JSON.parse(MessageBody) as Won).userId))
      .map(({ Id }) => Id);
    return {
      Successful: (Successful as Entry[]).filter(({ Id }) => !bad.includes(Id)),
      Failed: bad.map((Id) => ({ Id, SenderFault: false, Code: 'InternalError', Message: 'try again' })),
    };
  });
  const answers = await Promise.all(users.map((userId) => press(api, saleId, userId)));
  answers.forEach((answer, n) => {
    if (refuse.has(`u-${n}`)) expectProblem(answer, 'queue_unavailable');
    else expect(answer.statusCode).toBe(202);
  });
  await expect
    .poll(() => api.redis.zrange(`{sale:${saleId}}:unqueued`, 0, '-1'), { timeout: 15_000 })
    .toEqual([...refuse].sort());
  proxy.rewrite.clear();
  for (const userId of refuse) expect((await win(api, saleId, userId)).outcome).toBe('dup');
  await expect.poll(() => api.redis.zcard(`{sale:${saleId}}:unqueued`), { timeout: 15_000 }).toBe(0);
});

test('a batch answered 200 that says nothing of some entries: those are refused', async () => {
  const saleId = await putSale(api);
  proxy.rewrite.set('SendMessageBatch', () => ({ Successful: [], Failed: [] }));
  expectProblem(await press(api, saleId, 'u'), 'queue_unavailable');
  proxy.rewrite.clear();
  expect((await win(api, saleId, 'u')).outcome).toBe('dup');
});

/** SIGTERM: everything in flight is answered, nothing that was promised is lost, and the process ends by itself. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Agent, request, type Dispatcher } from 'undici';
import { Redis } from 'ioredis';
import pg from 'pg';
import { formatMessage } from '../../src/queue/message.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { asAdmin, asShop, saleSettings, settings, type Won } from '../http/api.ts';
import { queueProxy, type QueueProxy } from './queue-proxy.ts';
import { childrenOf, said, serve, start } from './program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

let stores: Stores;
let proxy: QueueProxy;
let sqs: SQSClient;
let redis: Redis;
beforeAll(async () => {
  stores = await freshStores();
  proxy = await queueProxy(stores.env);
  redis = new Redis(stores.redisUrl);
  const { AWS_REGION: region = '', AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '' } = stores.env;
  sqs = new SQSClient({
    region,
    endpoint: stores.sqsEndpoint ?? '',
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
  });
});
afterAll(async () => {
  sqs.destroy();
  redis.disconnect();
  await proxy.close();
  await stores.drop();
});

type Answer = { status: number; closes: boolean; body: Won & { code?: string } };

/** A client that keeps its connections, one request at a time on each. */
function keepAliveClient(url: string) {
  const dispatcher = new Agent({ connections: 200, pipelining: 1, keepAliveTimeout: 60_000 });
  const call = async (method: Dispatcher.HttpMethod, path: string, body?: object, headers = {}): Promise<Answer> => {
    const answer = await request(`${url}${path}`, {
      method,
      dispatcher,
      headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const closes = answer.headers['connection'] === 'close';
    return { status: answer.statusCode, closes, body: (await answer.body.json()) as Answer['body'] };
  };
  return { call, close: () => dispatcher.destroy() };
}

async function messages(): Promise<Won[]> {
  const found: Won[] = [];
  for (;;) {
    const command = new ReceiveMessageCommand({ QueueUrl: stores.queueUrl, MaxNumberOfMessages: 10 });
    const { Messages = [] } = await sqs.send(command);
    if (Messages.length === 0) return found;
    found.push(...Messages.map(({ Body = '' }) => JSON.parse(Body) as Won));
  }
}

test.each(['1', '2'])(
  '200 requests in flight, %s processes: all answered, each winner queued, exit 0',
  async (processes) => {
    const api = await serve({ ...stores.env, ...proxy.env, API_PROCESSES: processes });
    const client = keepAliveClient(api.url);
    const saleId = `in-flight-${processes}`;
    await client.call('PUT', `/admin/sales/${saleId}`, saleSettings({ total: 200 }), asAdmin);
    await Promise.all(Array.from({ length: 200 }, () => client.call('GET', '/livez'))); // 200 connections
    proxy.delay.set('SendMessageBatch', 1000);
    const pressed = Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        client.call('POST', `/sales/${saleId}/reserve`, { userId: `u-${n}` }, asShop),
      ),
    );
    // All of them have won and wait for the queue, none has its answer yet.
    const held = () => redis.hget(`{sale:${saleId}}:sale`, 'held');
    await expect.poll(held, { interval: 1, timeout: 10_000 }).toBe('200');
    api.kill('SIGTERM');
    const answers = await pressed;
    proxy.delay.clear();
    const ended = await api.ended;
    expect(ended, ended.stdout).toMatchObject({ code: 0, signal: null });
    const won = answers.filter(({ status }) => status === 202);
    expect(won).toHaveLength(200);
    const sent = new Set((await messages()).map(({ reservationId }) => reservationId));
    expect(won.filter(({ body }) => !sent.has(body.reservationId))).toEqual([]);
    // Nobody sends another request into a connection that is about to be closed.
    expect(answers.filter(({ closes }) => !closes)).toEqual([]);
    await client.close();
  },
);

test('with SHUTDOWN_DELAY_MS: not ready at once, but serving until the balancer has seen it', async () => {
  const api = await serve({ ...stores.env, SHUTDOWN_DELAY_MS: '4000' });
  const client = keepAliveClient(api.url);
  const saleId = 'with-delay';
  await client.call('PUT', `/admin/sales/${saleId}`, saleSettings({ total: 1000 }), asAdmin);
  expect((await client.call('GET', '/readyz')).status).toBe(200);
  await Promise.all(Array.from({ length: 20 }, () => client.call('GET', '/livez'))); // 20 connections
  api.kill('SIGTERM');
  await expect.poll(async () => (await client.call('GET', '/readyz')).status, { timeout: 3500 }).toBe(503);
  expect((await client.call('GET', '/readyz')).body).toMatchObject({ status: 'draining' });
  expect((await client.call('GET', '/livez')).status).toBe(200);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => client.call('POST', `/sales/${saleId}/reserve`, { userId: `u-${n}` }, asShop)),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202));
  expect(await api.ended).toMatchObject({ code: 0, signal: null });
  const sent = new Set((await messages()).map(({ reservationId }) => reservationId));
  expect(answers.filter(({ body }) => !sent.has(body.reservationId))).toEqual([]);
  await client.close();
});

// One process alone has nobody who would replace it.
test.each(['SIGINT', 'SIGHUP'] as const)(
  'idle connections do not keep it: exit 0 well before the deadline, also by %s',
  async (signal) => {
    const api = await serve({ ...stores.env, SHUTDOWN_DEADLINE_MS: '60000', API_PROCESSES: '1', LOG_LEVEL: 'info' });
    const client = keepAliveClient(api.url);
    await Promise.all(Array.from({ length: 20 }, () => client.call('GET', '/livez')));
    const asked = performance.now();
    api.kill(signal);
    expect(await api.ended).toMatchObject({ code: 0, signal: null });
    expect(api.output()).toContain(`"signal":"${signal}","msg":"stopping"`);
    expect(performance.now() - asked).toBeLessThan(10_000);
    await client.close();
  },
);

test('a connection on which nothing was ever sent does not keep it: browsers open them in advance', async () => {
  const api = await serve({ ...stores.env, SHUTDOWN_DEADLINE_MS: '60000' });
  const { hostname, port } = new URL(api.url);
  const silent = connect(Number(port), hostname);
  await once(silent, 'connect');
  const closed = once(silent, 'close');
  await expect.poll(async () => (await fetch(`${api.url}/livez`)).status).toBe(200); // it is known to the server by now
  const asked = performance.now();
  api.kill('SIGTERM');
  expect(await api.ended).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - asked).toBeLessThan(30_000);
  await closed;
});

test('a signal while the processes start: exit 0, and none of them lingers', async () => {
  const api = start(['serve'], { ...settings, ...stores.env, API_PROCESSES: '2', PORT: '0' });
  await expect.poll(() => childrenOf(api).length, { interval: 5, timeout: 20_000 }).toBe(2);
  const pids = childrenOf(api);
  api.kill('SIGTERM');
  const ended = await api.ended;
  expect(ended, ended.stdout + ended.stderr).toMatchObject({ code: 0, signal: null });
  expect(ended.stdout).not.toContain('all API processes listen');
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

test('work: a message that comes while it stops is done or back at once, not after its visibility', async () => {
  const db = new pg.Client({ connectionString: stores.databaseUrl });
  await db.connect();
  const before = proxy.seen('ReceiveMessage');
  const worker = start(['work'], { ...settings, ...stores.env, ...proxy.env, QUEUE_WAIT_SECONDS: '2' });
  await expect.poll(() => proxy.seen('ReceiveMessage'), { timeout: 15_000 }).toBeGreaterThan(before);
  worker.kill('SIGTERM'); // its long poll is pending
  await said(worker, /stopping/);
  const now = Date.now();
  const hold = {
    ...{ reservationId: crypto.randomUUID(), saleId: 'with-delay', userId: 'late', qty: 1 },
    ...{ amount: 1, currency: 'EUR', reservedAt: now, expiresAt: now + 60_000 },
  };
  await sqs.send(new SendMessageCommand({ QueueUrl: stores.queueUrl, MessageBody: formatMessage(hold) }));
  const ended = await worker.ended;
  expect(ended, ended.stdout).toMatchObject({ code: 0, signal: null });
  const orders = await db.query('select 1 from sale_orders where reservation_id = $1', [hold.reservationId]);
  const back = (await messages()).map(({ reservationId }) => reservationId);
  if (orders.rowCount === 1) expect(back).not.toContain(hold.reservationId);
  else expect(back).toContain(hold.reservationId);
  await db.end();
});

test('keep ends at once, too', async () => {
  const keeper = start(['keep'], { ...settings, ...stores.env, KEEPER_INTERVAL_MS: '60000' });
  await said(keeper, /PAYMENT_PROVIDER_URL is not set/);
  keeper.kill('SIGTERM');
  const ended = await keeper.ended;
  expect(ended, ended.stdout).toMatchObject({ code: 0, signal: null });
});

test('a port that is taken: exit 1 with the reason, and no process that lingers', async () => {
  const first = await serve(stores.env);
  const second = start(['serve'], { ...settings, ...stores.env, PORT: new URL(first.url).port });
  const ended = await second.ended;
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(/EADDRINUSE/)]);
  first.kill('SIGTERM');
  expect((await first.ended).code).toBe(0);
});

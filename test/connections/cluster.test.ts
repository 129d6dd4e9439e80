/** Redis Cluster: the whole walk on it, a node that fails, and a replica that takes over. */
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createRedis } from '../../src/redis.ts';
import { admin, ask, deliver, eventOf, expectProblem, gateState, newId, press, putSale, record } from '../http/api.ts';
import { reservationUrl, shortLimits, testApi, win, type TestApi } from '../http/api.ts';
import { flashgate, start } from '../process/program.ts';
import { privateCluster, type Node, type RedisCluster } from '../support/redis-cluster.ts';
import { freshStores, type Stores } from '../support/stores.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });

let stores: Stores;
let cluster: RedisCluster;
let api: TestApi;
let env: Record<string, string>;
beforeAll(async () => {
  [stores, cluster] = await Promise.all([freshStores(), privateCluster({ replicas: 1 })]);
  env = { ...stores.env, ...cluster.env, ...shortLimits, LOG_LEVEL: 'warn' };
  api = await testApi(env, cluster.connect);
  await api.wired.connected();
});
afterAll(async () => {
  await api.close();
  cluster.close();
  await stores.drop();
});

/** A sale on each of the masters, in their order. */
async function saleOnEach(settings: Record<string, unknown>): Promise<string[]> {
  const sales = new Map<string, string>();
  while (sales.size < cluster.masters.length) {
    const saleId = newId();
    const { id } = await cluster.ownerOf(saleId);
    if (!sales.has(id)) sales.set(id, await putSale(api, settings, saleId));
  }
  return cluster.masters.map(({ id }) => sales.get(id) ?? '');
}

test('the walk of a reservation, on each node: won, told again, given up, paid, sold out, lost, rebuilt, audited', async () => {
  for (const saleId of await saleOnEach({ total: 3 })) {
    const [paid, gone] = [await win(api, saleId, 'paid'), await win(api, saleId, 'gone')];
    expect(await win(api, saleId, 'paid')).toEqual({ ...paid, outcome: 'dup' });
    await record(api, paid, gone);
    expect((await deliver(api, eventOf(paid))).statusCode).toBeLessThan(300);
    expect((await ask(api, reservationUrl(gone), { method: 'DELETE' })).statusCode).toBe(204);
    await win(api, saleId, 'two', 2);
    expectProblem(await press(api, saleId, 'late'), 'sold_out');
    expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({ gate: { stock: 0, held: 3 } });
    await record(api, await win(api, saleId, 'two'));

    const before = await gateState(api, saleId);
    const holds = await api.redis.hgetall(`{sale:${saleId}}:holds`);
    const { client } = await cluster.ownerOf(saleId);
    await client.flushall();
    await client.script('FLUSH');
    expectProblem(await press(api, saleId, 'paid'), 'gate_not_loaded');
    const rebuilt = await flashgate(['rebuild', '--sale', saleId], env);
    expect(rebuilt).toMatchObject({ code: 0, stdout: `sale ${saleId}: the gate is open\n` });
    expect(await gateState(api, saleId)).toMatchObject({ ...before, version: '0' });
    expect(await api.redis.hgetall(`{sale:${saleId}}:holds`)).toEqual(holds);
    expect(await win(api, saleId, 'paid')).toEqual({ ...paid, outcome: 'dup' });
  }
  const audited = await flashgate(['audit'], env);
  expect(audited.code, audited.stdout).toBe(0);
  expect(audited.stdout).toMatch(/gate_key_has_sale +3 +0/); // it has looked at all nodes
});

test('commands that ask once find every node connected', async () => {
  const saleId = await putSale(api, { total: 3 });
  for (const command of [
    ['reconcile', '--once'],
    ['sweep', '--once'],
    ['sale', 'show', saleId],
  ]) {
    const ended = await flashgate(command, env);
    expect(ended.code, ended.stderr).toBe(0);
  }
});

test('keepers share the shards, whose leases lie on all nodes, and expire what is due', async () => {
  const sales = await saleOnEach({ total: 2, holdSeconds: 3 });
  await record(api, ...(await Promise.all(sales.map((saleId) => win(api, saleId, 'slow')))));
  const leases = async () => (await Promise.all(cluster.masters.map(({ client }) => client.keys('lease:*')))).flat();
  const quick = { ...env, KEEPER_INTERVAL_MS: '100', LEASE_TTL_MS: '6000' };
  const keepers = [start(['keep'], quick), start(['keep'], quick)];
  const pids = keepers.map(({ child }) => String(child.pid));
  await expect
    .poll(
      async () => {
        const shards = (await leases()).filter((key) => key.startsWith('lease:shard:'));
        const owners = await Promise.all(shards.map((key) => api.redis.get(key)));
        return pids.every((pid) => owners.some((owner) => owner?.split(':').at(-2) === pid));
      },
      { timeout: 40_000 },
    )
    .toBe(true);
  for (const saleId of sales) {
    await expect.poll(() => gateState(api, saleId), { timeout: 40_000 }).toMatchObject({ stock: '2', held: '0' });
  }
  for (const { kill } of keepers) kill('SIGTERM');
  for (const { ended } of keepers) expect((await ended).code).toBe(0);
  expect(await leases()).toEqual([]);
});

/** A client as the product's. */
async function clientOfOurs(): Promise<Cluster> {
  const client = createRedis(api.config, api.wired.logger);
  if (!(client instanceof Cluster)) throw new Error('REDIS_MODE says that it is one');
  await vi.waitFor(() => expect(client.status).toBe('ready'), { timeout: 15_000 });
  return client;
}

test('every master is connected to before it is asked for anything, or all but the first to ask would be refused', async () => {
  const client = await clientOfOurs();
  await expect.poll(() => client.nodes('master').map(({ status }) => status)).toEqual(['ready', 'ready', 'ready']);
  client.disconnect();
});

test('what was under way when a connection was lost is told, and not sent again', async () => {
  const client = await clientOfOurs();
  const node = await cluster.ownerOf('x');
  const waiting = client.blpop('{sale:x}', 0);
  const lost = expect(waiting).rejects.toThrow(/closed/);
  await expect.poll(() => node.client.info('clients')).toContain('blocked_clients:1');
  await node.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await node.client.rpush('{sale:x}', 'still there');
  await lost;
  expect(await node.client.lrange('{sale:x}', 0, -1)).toEqual(['still there']);
  await node.client.del('{sale:x}');
  client.disconnect();
});

test('readiness asks every master', async () => {
  const [, , third] = cluster.masters;
  const redis = async () => (await ask(api, '/readyz')).json<{ dependencies: { redis: object } }>().dependencies.redis;
  expect(await redis()).toEqual({ ok: true });
  await third?.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  expect(await redis()).toEqual({
    ok: false,
    detail: expect.stringMatching(`Redis at 127.0.0.1:${third?.port} evicts keys`) as string,
  });
  await third?.client.config('SET', 'maxmemory-policy', 'noeviction');
});

/** Many presses: each is answered in time, and those that are refused for the node are named so. */
async function pressAll(saleId: string, name: string) {
  const started = performance.now();
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => press(api, saleId, `${name}-${n}`)));
  expect(performance.now() - started).toBeLessThan(api.config.REQUEST_DEADLINE_MS * 2.5);
  for (const answer of answers) {
    if (answer.statusCode !== 202) expectProblem(answer, 'gate_unavailable');
    expect(answer.body).not.toMatch(/MOVED|ASK|TRYAGAIN|CLUSTERDOWN|Connection/);
  }
  return answers;
}

const served = (saleId: string, userId: string) =>
  expect.poll(async () => (await press(api, saleId, userId)).statusCode, { timeout: 30_000 }).toBeLessThan(300);

test('a node is killed: its sales get 503 gate_unavailable, the others go on; it comes back without a restart of ours', async () => {
  const sales = await saleOnEach({ total: 1000 });
  const [, , saleId = ''] = sales;
  const node = await cluster.ownerOf(saleId);
  const holder = await win(api, saleId, 'holder');
  node.kill('SIGKILL');
  await node.exited;
  for (const answer of await pressAll(saleId, 'away')) expectProblem(answer, 'gate_unavailable');
  for (const other of sales.filter((id) => id !== saleId)) await win(api, other, 'elsewhere');
  await expect
    .poll(async () => JSON.stringify((await ask(api, '/readyz')).json()), { timeout: 30_000 })
    .toMatch(/serves \d+ of its 16384 slots|ECONNREFUSED|closed/);
  await node.restart();
  await served(saleId, 'holder');
  expect(await win(api, saleId, 'holder')).toEqual({ ...holder, outcome: 'dup' });
  expect(api.log.map(({ msg }) => msg)).toContain('a node of the Redis Cluster is away: 503 for its sales');
  await expect.poll(() => node.client.cluster('INFO'), { timeout: 30_000 }).toContain('cluster_state:ok');
});

test('a frozen node: 503 gate_unavailable in time, and recovery', async () => {
  const [, saleId = ''] = await saleOnEach({ total: 1000 });
  const node = await cluster.ownerOf(saleId);
  const holder = await win(api, saleId, 'holder');
  node.kill('SIGSTOP');
  try {
    for (const answer of await pressAll(saleId, 'frozen')) expectProblem(answer, 'gate_unavailable');
  } finally {
    node.kill('SIGCONT');
  }
  await served(saleId, 'holder');
  expect(await win(api, saleId, 'holder')).toEqual({ ...holder, outcome: 'dup' });
});

test('a master dies and its replica takes over: 503 until then, then every hold is there', async () => {
  const [saleId = ''] = await saleOnEach({ total: 1000 });
  const [master] = cluster.masters;
  const holder = await win(api, saleId, 'holder');
  const offset = async (node: Node | undefined, field: string) =>
    new RegExp(`${field}:(\\d+)`).exec((await node?.client.info('replication')) ?? '')?.[1];
  await expect
    .poll(
      async () =>
        (await offset(cluster.replicas[0], 'slave_repl_offset')) === (await offset(master, 'master_repl_offset')),
    )
    .toBe(true);
  master?.kill('SIGKILL');
  for (const answer of await pressAll(saleId, 'away')) expectProblem(answer, 'gate_unavailable');
  await served(saleId, 'holder');
  expect(await win(api, saleId, 'holder')).toEqual({ ...holder, outcome: 'dup' });
  expect((await cluster.ownerOf(saleId)).id).toBe(cluster.replicas[0]?.id);
});

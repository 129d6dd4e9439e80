/** Redis behind Sentinel: a master dies, the sentinel names another, and the API goes on without a restart. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectProblem, press, putSale, record, shortLimits, testApi, win } from '../http/api.ts';
import { expectReason, flashgate } from '../process/program.ts';
import { privateRedis, privateSentinel } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';

vi.setConfig({ testTimeout: 90_000 });

const NAME = 'flash';

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

test('failover: 503 gate_unavailable until there is a new master, then every hold is there', async () => {
  const soon = () => ({ 'repl-diskless-sync-delay': 0 });
  const [master, replica] = [await privateRedis(soon), await privateRedis(soon)];
  const follower = new Redis(replica.url);
  const leader = new Redis(master.url, { retryStrategy: () => null });
  leader.on('error', () => undefined);
  await follower.replicaof('127.0.0.1', master.port);
  await expect.poll(() => follower.info('replication'), { timeout: 30_000 }).toContain('master_link_status:up');
  const sentinel = await privateSentinel(NAME, master.port);
  const asked = new Redis(sentinel.url);
  const replicas = async () => String(await asked.call('SENTINEL', 'MASTER', NAME)).match(/num-slaves,(\d+)/)?.[1];
  await expect.poll(replicas, { timeout: 30_000 }).toBe('1');

  const nobody = 'redis://127.0.0.1:1'; // one of them may be away
  const env = { REDIS_MODE: 'sentinel', REDIS_SENTINEL_NAME: NAME, REDIS_URL: `${nobody} ${sentinel.url}` };
  const all = { ...stores.env, ...env, ...shortLimits, LOG_LEVEL: 'warn' };
  const api = await testApi(all, () => follower.duplicate());
  try {
    await api.wired.connected();
    const saleId = await putSale(api, { total: 1000 });
    const holder = await win(api, saleId, 'holder');
    await record(api, holder);
    const audited = await flashgate(['audit', '--sale', saleId], all);
    expect(audited.code, audited.stdout).toBe(0);
    const offset = async (client: Redis, field: string) =>
      new RegExp(`${field}:(\\d+)`).exec(await client.info('replication'))?.[1];
    await expect
      .poll(async () => (await offset(follower, 'slave_repl_offset')) === (await offset(leader, 'master_repl_offset')))
      .toBe(true);

    master.kill('SIGKILL');
    await master.exited;
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => press(api, saleId, `away-${n}`)));
    for (const answer of answers) expectProblem(answer, 'gate_unavailable');
    await expect
      .poll(async () => (await press(api, saleId, 'holder')).statusCode, { timeout: 60_000, interval: 100 })
      .toBe(200);
    expect(await win(api, saleId, 'holder')).toEqual({ ...holder, outcome: 'dup' });
    const after = await flashgate(['audit', '--sale', saleId], all);
    expect(after.code, after.stdout).toBe(0);
  } finally {
    await api.close();
    for (const client of [follower, leader, asked]) client.disconnect();
  }
});

test('sentinels that do not know the name, or are away: exit 3 of the audit, and the reason', async () => {
  const env = { ...stores.env, REDIS_MODE: 'sentinel', REDIS_SENTINEL_NAME: NAME, REDIS_URL: 'redis://127.0.0.1:1' };
  const audited = await flashgate(['audit'], { ...env, DATABASE_URL: stores.databaseUrl });
  expect([audited.code, audited.stdout]).toEqual([3, expect.stringMatching(/sentinels\s+are\s+unreachable/)]);
  expectReason(await flashgate(['sale', 'list'], { ...env, REDIS_SENTINEL_NAME: '' }), /REDIS_SENTINEL_NAME/);
});

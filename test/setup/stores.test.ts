/** The harness itself: stores of a file's own, and servers of a test's own. */
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, test } from 'vitest';
import { privatePostgres, privateQueue, privateRedis } from '../support/servers.ts';
import { freshStores } from '../support/stores.ts';

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query<Record<string, unknown>>(sql).finally(() => client.end())).rows;
}

test('two sets of stores share nothing, and a dropped one is gone', async () => {
  const [one, two] = await Promise.all([freshStores(), freshStores({ visibilitySeconds: 1 })]);
  expect(new Set([one.databaseUrl, two.databaseUrl, one.redisUrl, two.redisUrl, one.queueUrl, two.queueUrl]).size).toBe(
    6,
  );
  expect(await ask(one.databaseUrl, 'select count(*)::int as shards from shard_fences')).toEqual([{ shards: 256 }]);

  const [redisOne, redisTwo] = [new Redis(one.redisUrl), new Redis(two.redisUrl)];
  await redisOne.set('stock', 1);
  expect(await redisTwo.get('stock')).toBeNull();
  for (const client of [redisOne, redisTwo]) client.disconnect();

  await Promise.all([one.drop(), two.drop()]);
  await expect(ask(one.databaseUrl, 'select 1')).rejects.toThrow('does not exist');
});

test('a private Redis and a private Postgres have their data after SIGKILL and restart', async () => {
  const [redis, postgres] = await Promise.all([privateRedis(), privatePostgres()]);
  const before = [redis.pid, postgres.pid];
  await ask(postgres.url, 'create table t as select 1 as a');
  const client = new Redis(redis.url);
  await client.set('stock', 100);
  client.disconnect();

  for (const server of [redis, postgres]) server.kill('SIGKILL');
  await Promise.all([redis.exited, postgres.exited]);
  await expect(ask(postgres.url, 'select 1')).rejects.toThrow('ECONNREFUSED');
  await Promise.all([redis.restart(), postgres.restart()]);

  expect(before).not.toContain(redis.pid);
  expect(await ask(postgres.url, 'select a from t')).toEqual([{ a: 1 }]);
  const again = new Redis(redis.url);
  expect(await again.get('stock')).toBe('100');
  again.disconnect();
});

test('a private queue answers under the same address after a restart', async () => {
  const queue = await privateQueue();
  const alive = async () => (await fetch(`${queue.sqsEndpoint}/health`)).status;
  expect(await alive()).toBe(200);
  queue.kill('SIGKILL');
  await queue.exited;
  await expect(alive()).rejects.toThrow();
  await queue.restart();
  expect(await alive()).toBe(200);
});

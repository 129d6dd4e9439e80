/** Stores of a test file's own, on the servers that all test files share. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { inject } from 'vitest';
import { createQueues, deleteQueues } from '../../scripts/servers/index.js';

export type Stores = {
  /** A database with the whole schema and no rows. */
  databaseUrl: string;
  /** An empty logical database of Redis. */
  redisUrl: string;
  queueUrl: string;
  dlqUrl: string;
  /** Undefined if the queue is AWS' own. */
  sqsEndpoint: string | undefined;
  /** The same as environment variables, for a child process or for the settings. */
  env: Record<string, string>;
  /** Removes them. Close what is connected first. */
  drop(): Promise<void>;
};

/**
 * Creates a database, a logical Redis database and a queue with its dead-letter queue.
 * @param options visibilitySeconds: how long a received message stays hidden (default 30)
 */
export async function freshStores(options: { visibilitySeconds?: number } = {}): Promise<Stores> {
  const { env } = inject('services');
  const name = `flashgate-test-${randomBytes(6).toString('hex')}`;
  const [database, redis, queues] = await Promise.all([
    createDatabase(name.replaceAll('-', '_')),
    claimRedisDatabase(),
    createQueues({ env, name, ...options }),
  ]);
  return {
    databaseUrl: database.url,
    redisUrl: redis.url,
    ...queues,
    sqsEndpoint: env['SQS_ENDPOINT'],
    env: {
      ...env,
      API_PROCESSES: '1', // a test that kills or counts processes says how many it wants
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      SQS_QUEUE_URL: queues.queueUrl,
      SQS_DLQ_URL: queues.dlqUrl,
    },
    drop: async () => {
      const urls = [queues.queueUrl, queues.dlqUrl];
      await Promise.all([database.drop(), redis.drop(), deleteQueues({ env, urls })]);
    },
  };
}

/** The same server, another database. */
export function databaseAt(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}

async function createDatabase(name: string) {
  const { env, template } = inject('services');
  const adminUrl = env['DATABASE_URL'] ?? '';
  const admin = async (sql: string) => {
    const client = new pg.Client({ connectionString: adminUrl });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  await admin(`create database ${name} template ${template}`);
  return { url: databaseAt(adminUrl, name), drop: () => admin(`drop database ${name} with (force)`) };
}

/** Takes an empty logical database, and only an empty one: REDIS_URL may name a server that has other data too. */
async function claimRedisDatabase() {
  const base = inject('services').env['REDIS_URL'] ?? '';
  for (;;) {
    const counter = new Redis(base);
    const number = await counter.incr('flashgate:test:claimed').finally(() => counter.disconnect());
    const url = databaseAt(base, String(number));
    const claimed = new Redis(url, { maxRetriesPerRequest: 1 });
    const size = await claimed.dbsize().finally(() => claimed.disconnect());
    if (size === 0) return { url, drop: () => flush(url) };
  }
}

async function flush(url: string): Promise<void> {
  const client = new Redis(url);
  await client.flushdb().finally(() => client.disconnect());
}

/**
 * Servers of a test's own, to kill, freeze, flush or restart. All are gone when the test file ends, also when it fails;
 * if its process is killed, they end with it or are cleaned up with the run.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, inject } from 'vitest';
import { createQueues, startPostgres, startQueue, startRedis, startSentinel } from '../../scripts/servers/index.js';
import type { Server } from '../../scripts/servers/index.js';

export type { Server } from '../../scripts/servers/index.js';

const running: Server[] = [];
afterAll(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
});

/**
 * A Redis with 512 empty logical databases. What was written to it is still there after `restart()`.
 * @param more settings of Redis, by its port
 */
export async function privateRedis(more?: (port: number) => Record<string, string | number>) {
  return track(await startRedis({ folder: ownFolder(), say: console.log, durable: true, ...(more && { more }) }));
}

/** A sentinel that watches the Redis on that port under that name. */
export async function privateSentinel(name: string, master: number): Promise<Server & { url: string }> {
  return track(await startSentinel({ folder: ownFolder(), say: console.log, name, master }));
}

/** A Postgres with an empty database: `migrate(url)` first. Commits are durable, whatever signal ends it. */
export async function privatePostgres(): Promise<Server & { url: string }> {
  return track(await startPostgres({ folder: ownFolder() }));
}

/** A queue with its dead-letter queue. It forgets all messages when it ends; `restart()` makes both queues anew. */
export async function privateQueue(
  options: { visibilitySeconds?: number } = {},
): Promise<Server & { env: Record<string, string>; queueUrl: string; dlqUrl: string; sqsEndpoint: string }> {
  const server = track(await startQueue({ folder: ownFolder() }));
  const create = () => createQueues({ env: server.env, name: 'flashgate-orders', ...options });
  const queues = await create();
  const restart = server.restart.bind(server);
  return Object.assign(server, queues, {
    env: { ...server.env, SQS_QUEUE_URL: queues.queueUrl, SQS_DLQ_URL: queues.dlqUrl },
    sqsEndpoint: `http://127.0.0.1:${server.port}`,
    restart: async () => {
      await restart();
      await create();
    },
  });
}

function ownFolder(): string {
  return join(inject('services').folder, `private-${randomBytes(6).toString('hex')}`);
}

function track<T extends Server>(server: T): T {
  running.push(server);
  return server;
}

/** Orders for the part `ledger`: sales that only the ledger has, holds to record, and ways to have them recorded through a queue. */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SQSClient } from '@aws-sdk/client-sqs';
import type pg from 'pg';
import { createQueues, deleteQueues } from '../../scripts/servers/index.js';
import type { Hold } from '../../src/domain/reservation.ts';
import { createSale } from '../../src/ledger/sales.ts';
import { Producer } from '../../src/queue/producer.ts';
import type { Bench } from '../bench.ts';
import { endChild, startChild } from './child.ts';
import { watch } from './cpu.ts';
import { runFlashgate } from './targets.ts';

/** `rate` in orders per second; `cpuUs` of Postgres per order. */
export type Recorded = { rate: number; cpuUs: number };

/** Holds of as many different buyers. */
export function holdsOf(saleId: string, count: number): Hold[] {
  const reservedAt = Date.now();
  return Array.from({ length: count }, (_, n) => ({
    ...{ reservationId: randomUUID(), saleId, userId: `buyer-${n}`, qty: 1, amount: 49_900, currency: 'EUR' },
    ...{ reservedAt, expiresAt: reservedAt + 3_600_000 },
  }));
}

/** In the plain designs' tables. @returns its id */
export async function plainSale({ peers }: Bench, total: number): Promise<string> {
  const saleId = `ledger-${randomUUID().slice(0, 8)}`;
  await peers.pool.query('insert into stock (sale_id, total, amount) values ($1, $2, 49900)', [saleId, total]);
  return saleId;
}

/** In the ledger only: no gate is opened, and none is needed. @returns its id */
export async function ownSale({ pool }: Bench, total: number): Promise<string> {
  const saleId = `ledger-${randomUUID().slice(0, 8)}`;
  const now = Date.now();
  await createSale(pool, saleId, {
    ...{ name: 'ledger', total, holdSeconds: 3600, maxPerReservation: 1, price: { amount: 49_900, currency: 'EUR' } },
    startsAt: new Date(now - 1000).toISOString(),
    endsAt: new Date(now + 86_400_000).toISOString(),
  });
  return saleId;
}

/** Measures what records that many orders. */
export async function timed({ pids }: Bench, orders: number, work: () => Promise<void>): Promise<Recorded> {
  const [started, spent] = [performance.now(), watch({ postgres: pids.postgres })];
  await work();
  return { rate: (orders * 1000) / (performance.now() - started), cpuUs: (spent().postgres * 1000) / orders };
}

type Stock = 'stock' | 'sale_stock';

const sold = async (pool: pg.Pool, stock: Stock, saleId: string) =>
  (await pool.query<{ sold: number }>(`select sold from ${stock} where sale_id = $1`, [saleId])).rows[0]?.sold ?? 0;

/** @throws {Error} when it is another number: what was measured was not that many orders */
export async function expectSold(pool: pg.Pool, stock: Stock, saleId: string, orders: number): Promise<void> {
  const found = await sold(pool, stock, saleId);
  if (found !== orders) throw new Error(`sale ${saleId}: ${found} units are sold, not ${orders}`);
}

const DRAINED_MS = 180_000;

/** The plain worker, or flashgate's with these settings. */
export type Worker = 'plain' | Record<string, string>;

/**
 * The worker starts on a full queue of its own; from the first order to the last.
 * @throws {Error} when it has not recorded all after three minutes, or ends before
 */
export async function throughQueue(bench: Bench, orders: number, worker: Worker): Promise<Recorded> {
  const { env, peers, pool, pids } = bench;
  const [saleId, db, stock] =
    worker === 'plain'
      ? [await plainSale(bench, orders), peers.pool, 'stock' as const]
      : [await ownSale(bench, orders), pool, 'sale_stock' as const];
  const queues = await ownQueues(env);
  await send(env, queues.queueUrl, holdsOf(saleId, orders), 8);
  const { hasEnded, stop } = await startWorker(bench, worker, queues.queueUrl);
  try {
    const recorded = () => {
      if (hasEnded()) throw new Error('the worker ended before the queue was drained: its output says why');
      return sold(db, stock, saleId);
    };
    const first = await untilAtLeast(1, recorded);
    const before = await recorded();
    const spent = watch({ postgres: pids.postgres });
    const last = await untilAtLeast(orders, recorded);
    const counted = Math.max(1, orders - before);
    return { rate: (counted * 1000) / (last - first), cpuUs: (spent().postgres * 1000) / counted };
  } finally {
    await stop();
    await deleteQueues({ env, urls: [queues.queueUrl, queues.dlqUrl] });
  }
}

async function startWorker(bench: Bench, worker: Worker, queueUrl: string) {
  if (worker === 'plain') {
    const env = { ...bench.env, DATABASE_URL: bench.peers.url, SQS_QUEUE_URL: queueUrl };
    const { child } = await startChild(join(import.meta.dirname, '../peers/worker.ts'), { env });
    return { hasEnded: () => endedAlready(child), stop: () => endChild(child) };
  }
  const child = runFlashgate(bench, 'work', { ...worker, SQS_QUEUE_URL: queueUrl });
  const stop = async () => {
    child.kill('SIGTERM');
    await child.done;
  };
  return { hasEnded: () => endedAlready(child), stop };
}

const endedAlready = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

/** @returns when so many orders were recorded, by `performance.now()` */
async function untilAtLeast(orders: number, recorded: () => Promise<number>): Promise<number> {
  let found = 0;
  for (const end = performance.now() + DRAINED_MS; performance.now() < end;) {
    found = await recorded();
    if (found >= orders) return performance.now();
    await sleep(20);
  }
  throw new Error(`the queue was not drained within ${DRAINED_MS / 1000} s: ${found} of ${orders} orders are recorded`);
}

const ownQueues = (env: Record<string, string>) =>
  createQueues({ env, name: `bench-${randomUUID().slice(0, 8)}`, visibilitySeconds: 120 });

/** Sends holds to a queue of their own as an API process does, with so many calls of ten under way. @returns messages per second */
export async function sending({ env }: Bench, messages: number, inFlight: number): Promise<number> {
  const queues = await ownQueues(env);
  try {
    const started = performance.now();
    await send(env, queues.queueUrl, holdsOf('nobody-receives', messages), inFlight);
    return (messages * 1000) / (performance.now() - started);
  } finally {
    await deleteQueues({ env, urls: [queues.queueUrl, queues.dlqUrl] });
  }
}

async function send(env: Record<string, string>, queueUrl: string, holds: Hold[], inFlight: number): Promise<void> {
  const { AWS_REGION: region = '', SQS_ENDPOINT: endpoint, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = env;
  const sqs = new SQSClient({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(id === undefined || secret === undefined ? {} : { credentials: { accessKeyId: id, secretAccessKey: secret } }),
  });
  const producer = new Producer(sqs, { queueUrl, timeoutMs: 30_000, inFlight, pending: holds.length });
  try {
    await Promise.all(holds.map((hold) => producer.send(hold, performance.now() + DRAINED_MS)));
  } finally {
    sqs.destroy();
  }
}

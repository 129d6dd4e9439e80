/** The ledger alone: orders per second, one per transaction with ten workers against flashgate's batches. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SQSClient } from '@aws-sdk/client-sqs';
import pg from 'pg';
import { createQueues, deleteQueues } from '../../scripts/servers/index.js';
import type { NewOrder } from '../../src/domain/recording.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { INSERT, insertValues, record } from '../../src/ledger/orders.ts';
import { createSale } from '../../src/ledger/sales.ts';
import { Producer } from '../../src/queue/producer.ts';
import type { Bench, Goal, Section } from '../bench.ts';
import { endChild, startChild } from '../lib/child.ts';
import { watch } from '../lib/cpu.ts';
import { table } from '../lib/markdown.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { runFlashgate } from '../lib/targets.ts';
import { recordOne } from '../peers/record-one.ts';

const WORKERS = 10;
type Measured = { rate: number; cpuUs: number };
type Way = { name: string; run: (bench: Bench, orders: number) => Promise<Measured> };

const PLAIN: Way = { name: 'one per transaction, ten workers', run: plainDirect };
const SAME: Way = {
  name: 'flashgate’s record(), one hold each, ten at once',
  run: (bench, n) => recordInBatches(bench, n, 1, WORKERS),
};
const BATCHED: Way = {
  name: 'flashgate’s record(), in batches, two at once',
  run: (bench, n) => recordInBatches(bench, n, bench.sizes.ledger.batch, 2),
};
const PLAIN_QUEUED: Way = {
  name: 'the plain worker, through the queue',
  run: (bench, n) => throughQueue(bench, n, 'plain'),
};
const QUEUED: Way = {
  name: 'flashgate’s worker, through the queue',
  run: (bench, n) => throughQueue(bench, n, 'flashgate'),
};

export async function ledgerAlone(bench: Bench): Promise<Section> {
  const { orders, plain, queued, queuedPlain, rounds, batch } = bench.sizes.ledger;
  const ways: [Way, number, Measured[]][] = [
    [PLAIN, plain, []],
    [SAME, plain, []],
    [BATCHED, orders, []],
    [PLAIN_QUEUED, queuedPlain, []],
    [QUEUED, queued, []],
  ];
  const raw: string[] = [];
  for (let n = 0; n < rounds; n += 1) {
    for (const [way, count, all] of ways) {
      const measured = await way.run(bench, count);
      all.push(measured);
      raw.push(
        `${way.name}, ${count}: ${digits(measured.rate)} orders/s, Postgres CPU µs/order ${digits(measured.cpuUs)}`,
      );
      bench.say(raw.at(-1) ?? '');
    }
  }
  const plan = await explainBatch(bench);
  const rate = (wanted: Way) => median(ways.find(([way]) => way === wanted)?.[2].map((each) => each.rate) ?? []);
  const times = rate(BATCHED) / rate(PLAIN);
  const goals: Goal[] = [
    {
      what: 'orders recorded, against one order per transaction with ten workers (no queue between)',
      goal: '≥ 30 ×',
      measured: `${digits(times)} ×`,
      met: times >= 30,
    },
  ];
  return {
    title: 'The ledger alone',
    goals,
    text: [
      `All orders are of one sale, whose stock row every transaction locks. Batches of ${batch}. Commits wait for the disk. Through the queue: ${queued.toLocaleString('en-US')} messages (${queuedPlain.toLocaleString('en-US')} for the plain worker) lie in it when the worker starts; timed from the first order to the last, so it says what worker, ledger and queue do together. The queue is a stand-in that runs on this machine; SQS itself is not.`,
      ...table(
        ['', 'orders per second', 'Postgres CPU µs per order'],
        ...ways.map(([way, , all]) => [
          way.name,
          withSpread(all.map((each) => each.rate)),
          withSpread(all.map((each) => each.cpuUs)),
        ]),
      ),
      `The plain worker's statement is one round trip into tables with half the indexes and one of three foreign keys; flashgate's own code with one hold per transaction is the other comparison: its batches are ${digits(rate(BATCHED) / rate(SAME))} × that.`,
      '',
      `Where the time goes: \`EXPLAIN (ANALYZE)\` of the statement that writes a batch of ${batch} orders, which is nearly all of the transaction (measuring each step itself costs some). Seven index entries and three foreign keys per order:`,
      '',
      '```text',
      ...plan,
      '```',
      '',
    ],
    charts: [
      {
        file: 'ledger.svg',
        title: 'Orders recorded per second',
        bars: ways.map(([way, , all]) => ({ name: way.name, value: median(all.map((each) => each.rate)) })),
      },
    ],
    figures: {
      'ledger-times': digits(times),
      'ledger-plain': digits(rate(PLAIN)),
      'ledger-batched': digits(rate(BATCHED)),
      'ledger-queued': digits(rate(QUEUED)),
      'ledger-us': digits(median(ways[2]?.[2].map((each) => each.cpuUs) ?? [])),
    },
    raw,
  };
}

/** What Postgres says of the statement that writes a batch, after some others; without its estimates. */
async function explainBatch(bench: Bench): Promise<string[]> {
  const { batch } = bench.sizes.ledger;
  const saleId = await ownSale(bench, batch * 11);
  const holds = holdsOf(saleId, batch * 11);
  const client = await bench.pool.connect();
  try {
    for (let n = 0; n < 10; n += 1) await record(bench.pool, holds.slice(n * batch, (n + 1) * batch));
    const orders = holds.slice(10 * batch).map((hold): NewOrder => ({ ...hold, ...RECORDED }));
    const { rows } = await client.query<{ 'QUERY PLAN': string }>({
      text: `explain (analyze, costs off, buffers off) ${INSERT.text}`,
      values: insertValues(orders),
    });
    return rows.map((row) => row['QUERY PLAN']);
  } finally {
    client.release();
  }
}

const RECORDED = { status: 'PENDING_PAYMENT', reason: null, liveReservationId: null } as const;

/** Holds of as many different buyers. */
function holdsOf(saleId: string, count: number): Hold[] {
  const reservedAt = Date.now();
  return Array.from({ length: count }, (_, n) => ({
    ...{ reservationId: randomUUID(), saleId, userId: `buyer-${n}`, qty: 1, amount: 49_900, currency: 'EUR' },
    ...{ reservedAt, expiresAt: reservedAt + 3_600_000 },
  }));
}

async function plainSale({ peers }: Bench, total: number): Promise<string> {
  const saleId = `ledger-${randomUUID().slice(0, 8)}`;
  await peers.pool.query('insert into stock (sale_id, total, amount) values ($1, $2, 49900)', [saleId, total]);
  return saleId;
}

/** In the ledger only: no gate is opened, and none is needed. */
async function ownSale({ pool }: Bench, total: number): Promise<string> {
  const saleId = `ledger-${randomUUID().slice(0, 8)}`;
  const now = Date.now();
  await createSale(pool, saleId, {
    ...{ name: 'ledger', total, holdSeconds: 3600, maxPerReservation: 1, price: { amount: 49_900, currency: 'EUR' } },
    startsAt: new Date(now - 1000).toISOString(),
    endsAt: new Date(now + 86_400_000).toISOString(),
  });
  return saleId;
}

/** Takes from a list with that many at once. */
async function share<T>(items: T[], atOnce: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items].reverse();
  const one = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function timed({ pids }: Bench, orders: number, work: () => Promise<void>): Promise<Measured> {
  const [started, spent] = [performance.now(), watch({ postgres: pids.postgres })];
  await work();
  return { rate: (orders * 1000) / (performance.now() - started), cpuUs: (spent().postgres * 1000) / orders };
}

async function plainDirect(bench: Bench, orders: number): Promise<Measured> {
  const saleId = await plainSale(bench, orders);
  const pool = new pg.Pool({ connectionString: bench.peers.url, max: WORKERS });
  try {
    await Promise.all(Array.from({ length: WORKERS }, () => pool.query('select pg_sleep(0.05)')));
    const measured = await timed(bench, orders, () =>
      share(holdsOf(saleId, orders), WORKERS, (hold) => recordOne(pool, hold)),
    );
    await expectSold(bench.peers.pool, 'stock', saleId, orders);
    return measured;
  } finally {
    await pool.end();
  }
}

async function recordInBatches(bench: Bench, orders: number, size: number, atOnce: number): Promise<Measured> {
  const saleId = await ownSale(bench, orders);
  const pool = new pg.Pool({ connectionString: bench.env['DATABASE_URL'], max: atOnce });
  const holds = holdsOf(saleId, orders);
  const batches = Array.from({ length: Math.ceil(orders / size) }, (_, n) => holds.slice(n * size, (n + 1) * size));
  try {
    await Promise.all(Array.from({ length: atOnce }, () => pool.query('select pg_sleep(0.05)')));
    const measured = await timed(bench, orders, () => share(batches, atOnce, (batch) => record(pool, batch)));
    await expectSold(bench.pool, 'sale_stock', saleId, orders);
    return measured;
  } finally {
    await pool.end();
  }
}

const sold = async (pool: pg.Pool, stock: 'stock' | 'sale_stock', saleId: string) =>
  (await pool.query<{ sold: number }>(`select sold from ${stock} where sale_id = $1`, [saleId])).rows[0]?.sold ?? 0;

async function expectSold(pool: pg.Pool, stock: 'stock' | 'sale_stock', saleId: string, orders: number): Promise<void> {
  const found = await sold(pool, stock, saleId);
  if (found !== orders) throw new Error(`sale ${saleId}: ${found} units are sold, not ${orders}`);
}

const DRAINED_MS = 180_000;

/** The worker starts on a full queue of its own; from the first order to the last. */
async function throughQueue(bench: Bench, orders: number, worker: 'plain' | 'flashgate'): Promise<Measured> {
  const { env, peers, pool, pids } = bench;
  const [saleId, db, stock] =
    worker === 'plain'
      ? [await plainSale(bench, orders), peers.pool, 'stock' as const]
      : [await ownSale(bench, orders), pool, 'sale_stock' as const];
  const queues = await createQueues({ env, name: `bench-${randomUUID().slice(0, 8)}`, visibilitySeconds: 120 });
  await fill(env, queues.queueUrl, holdsOf(saleId, orders));
  const settings = { SQS_QUEUE_URL: queues.queueUrl };
  const stop = await startWorker(bench, worker, settings);
  try {
    const first = await until(async () => ((await sold(db, stock, saleId)) > 0 ? performance.now() : undefined));
    const before = await sold(db, stock, saleId);
    const spent = watch({ postgres: pids.postgres });
    const last = await until(async () => ((await sold(db, stock, saleId)) === orders ? performance.now() : undefined));
    const counted = Math.max(1, orders - before);
    return { rate: (counted * 1000) / (last - first), cpuUs: (spent().postgres * 1000) / counted };
  } finally {
    await stop();
    await deleteQueues({ env, urls: [queues.queueUrl, queues.dlqUrl] });
  }
}

async function startWorker(bench: Bench, worker: 'plain' | 'flashgate', settings: Record<string, string>) {
  if (worker === 'plain') {
    const env = { ...bench.env, DATABASE_URL: bench.peers.url, ...settings };
    const { child } = await startChild(join(import.meta.dirname, '../peers/worker.ts'), { env });
    return () => endChild(child);
  }
  const child = runFlashgate(bench, 'work', settings);
  return async () => {
    child.kill('SIGTERM');
    await child.done;
  };
}

async function until(look: () => Promise<number | undefined>): Promise<number> {
  for (const end = performance.now() + DRAINED_MS; performance.now() < end;) {
    const found = await look();
    if (found !== undefined) return found;
    await sleep(20);
  }
  throw new Error(`the queue was not drained within ${DRAINED_MS / 1000} s`);
}

async function fill(env: Record<string, string>, queueUrl: string, holds: Hold[]): Promise<void> {
  const { AWS_REGION: region = '', SQS_ENDPOINT: endpoint, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = env;
  const sqs = new SQSClient({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(id === undefined || secret === undefined ? {} : { credentials: { accessKeyId: id, secretAccessKey: secret } }),
  });
  const producer = new Producer(sqs, { queueUrl, timeoutMs: 30_000, inFlight: 8, pending: holds.length });
  try {
    await Promise.all(holds.map((hold) => producer.send(hold, performance.now() + DRAINED_MS)));
  } finally {
    sqs.destroy();
  }
}

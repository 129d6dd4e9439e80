/** The ledger alone: orders per second, one per transaction with ten workers against flashgate's batches; and the queue. */
import pg from 'pg';
import { readConfig, type Config } from '../../src/config.ts';
import type { NewOrder } from '../../src/domain/recording.ts';
import { INSERT, insertValues, record } from '../../src/ledger/orders.ts';
import type { Bench, Goal, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import {
  expectSold,
  holdsOf,
  ownSale,
  plainSale,
  sending,
  throughQueue,
  timed,
  type Recorded,
} from '../lib/recording.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { recordOne } from '../peers/record-one.ts';

const WORKERS = 10;
/** What one receive brings at most. */
const RECEIVED = 10;
type Way = {
  name: string;
  /** For the chart. */
  short: string;
  orders: number;
  run: (bench: Bench, orders: number) => Promise<Recorded>;
  all: Recorded[];
};

/** What is compared, in the order of the table; what is shipped is among it. */
function ways({ sizes: { ledger } }: Bench, shipped: Config) {
  const { plain, orders, batches, queued, queuedPlain, receivers } = ledger;
  const way = (name: string, short: string, count: number, run: Way['run']): Way => ({
    ...{ name, short, orders: count, run, all: [] },
  });
  const ascending = (...numbers: number[]) => [...new Set(numbers)].sort((a, b) => a - b);
  return {
    plain: way('one per transaction, ten workers', 'one by one', plain, plainDirect),
    same: way('flashgate’s record(), one hold each, ten at once', 'record(), 1', plain, (bench, n) =>
      recordInBatches(bench, n, 1, WORKERS),
    ),
    batched: ascending(...batches, shipped.WORKER_BATCH).map((size) => ({
      size,
      ...way(
        `flashgate’s record(), ${size} holds each, two at once`,
        `record(), ${size}`,
        Math.min(orders, size * 400),
        (bench, n) => recordInBatches(bench, n, size, 2),
      ),
    })),
    plainQueued: way('the plain worker, through the queue', 'plain worker, queue', queuedPlain, (bench, n) =>
      throughQueue(bench, n, 'plain'),
    ),
    queued: ascending(...receivers, shipped.WORKER_RECEIVERS).map((count) => ({
      count,
      ...way(
        `flashgate’s worker with ${count} receivers, through the queue`,
        `worker, ${count} receivers, queue`,
        queued,
        (bench, n) =>
          throughQueue(bench, n, { WORKER_RECEIVERS: String(count), WORKER_BATCH: String(count * RECEIVED) }),
      ),
    })),
  };
}

/** The part `ledger`. */
export async function ledgerAlone(bench: Bench): Promise<Section> {
  const { rounds, inFlight, queued: messages } = bench.sizes.ledger;
  const shipped = readConfig(bench.env);
  const compared = ways(bench, shipped);
  const all = [compared.plain, compared.same, ...compared.batched, compared.plainQueued, ...compared.queued];
  const sends = [...new Set([...inFlight, shipped.QUEUE_SENDS_IN_FLIGHT])]
    .sort((a, b) => a - b)
    .map((calls) => ({ calls, rates: [] as number[] }));
  const raw: string[] = [];
  const note = (words: string) => {
    raw.push(words);
    bench.say(words);
  };
  for (let n = 0; n < rounds; n += 1) {
    for (const way of all) {
      const { rate, cpuUs } = await way.run(bench, way.orders);
      way.all.push({ rate, cpuUs });
      note(`${way.name}, ${way.orders}: ${digits(rate)} orders/s, Postgres CPU µs/order ${digits(cpuUs)}`);
    }
    for (const { calls, rates } of sends) {
      const rate = await sending(bench, Math.ceil(messages / 4), calls);
      rates.push(rate);
      note(`${calls} sends under way: ${digits(rate)} messages/s`);
    }
  }
  const plan = await explainBatch(bench);
  return {
    title: 'The ledger alone',
    goals: goals(compared, shipped),
    text: [
      `All orders are of one sale, whose stock row every transaction locks. Commits wait for the disk. Through the queue: ${messages.toLocaleString('en-US')} messages (${compared.plainQueued.orders.toLocaleString('en-US')} for the plain worker) lie in it when the worker starts; timed from the first order to the last, so it says what worker, ledger and queue do together. flashgate's worker gathers what its receivers have in hand, ten messages each, in two transactions at a time; as shipped it has ${shipped.WORKER_RECEIVERS} (\`WORKER_RECEIVERS\`) and puts up to ${shipped.WORKER_BATCH} orders into a transaction (\`WORKER_BATCH\`). The queue is a stand-in that runs on this machine; SQS itself is not.`,
      ...table(
        ['', 'orders per second', 'Postgres CPU µs per order'],
        ...all.map((way) => [
          way.name,
          withSpread(way.all.map((each) => each.rate)),
          withSpread(way.all.map((each) => each.cpuUs)),
        ]),
      ),
      `The plain worker's statement is one round trip into tables with fewer than half the indexes (three of seven entries per order) and the same two foreign keys; flashgate's own code with one hold per transaction is the other comparison: its largest batches are ${digits(rate(largest(compared)) / rate(compared.same))} × that.`,
      '',
      'What one API process sends into the queue, ten messages to a call, by calls under way (`QUEUE_SENDS_IN_FLIGHT`):',
      ...table(
        ['calls under way', 'messages per second'],
        ...sends.map(({ calls, rates }) => [String(calls), withSpread(rates)]),
      ),
      `Where the time goes: \`EXPLAIN (ANALYZE)\` of the statement that writes a batch of ${largest(compared).size} orders, which is nearly all of the transaction (measuring each step itself costs some). Seven index entries and two foreign keys per order:`,
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
        bars: all.map((way) => ({ name: way.short, value: rate(way) })),
      },
    ],
    figures: figures(compared, shipped, sends),
    raw,
  };
}

type Compared = ReturnType<typeof ways>;

const rate = ({ all }: Pick<Way, 'all'>) => median(all.map((each) => each.rate));
const largest = ({ batched }: Compared) => batched.at(-1) as Compared['batched'][number];

/** The worker as it is shipped, and record() with the batch that it can gather. */
function asShipped({ batched, queued }: Compared, { WORKER_BATCH, WORKER_RECEIVERS }: Config) {
  const record = batched.find(({ size }) => size === WORKER_BATCH);
  const worker = queued.find(({ count }) => count === WORKER_RECEIVERS);
  if (!record || !worker) throw new Error('the worker was not measured as it is shipped');
  return { record, worker };
}

function goals(compared: Compared, shipped: Config): Goal[] {
  const [plain, { record }, most] = [rate(compared.plain), asShipped(compared, shipped), largest(compared)];
  const times = rate(record) / plain;
  return [
    {
      what: `orders recorded in batches as shipped (${record.size}), against one order per transaction with ten workers (no queue between)`,
      goal: '≥ 30 ×',
      measured: `${digits(times)} × (${digits(rate(most) / plain)} × in batches of ${most.size})`,
      met: times >= 30,
    },
  ];
}

function figures(compared: Compared, shipped: Config, sends: { calls: number; rates: number[] }[]) {
  const { record, worker } = asShipped(compared, shipped);
  const [fewest, most] = [compared.queued[0] ?? worker, compared.queued.at(-1) ?? worker];
  const sent = (calls: number | undefined) => digits(median(sends.find((each) => each.calls === calls)?.rates ?? []));
  return {
    'ledger-plain': digits(rate(compared.plain)),
    'ledger-batched': digits(rate(record)),
    'ledger-us': digits(median(record.all.map((each) => each.cpuUs))),
    'ledger-largest': digits(rate(largest(compared))),
    'ledger-queued': digits(rate(worker)),
    'worker-fewest': `${digits(rate(fewest))} with ${fewest.count}`,
    'worker-most': `${digits(rate(most))} with ${most.count}`,
    'sends-one': sent(1),
    'sends-shipped': sent(shipped.QUEUE_SENDS_IN_FLIGHT),
    'sends-most': `${sent(sends.at(-1)?.calls)} with ${String(sends.at(-1)?.calls)}`,
  };
}

/** What Postgres says of the statement that writes a batch, after some others; without its estimates. */
async function explainBatch(bench: Bench): Promise<string[]> {
  const batch = Math.max(...bench.sizes.ledger.batches);
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

/** Takes from a list with that many at once. */
async function share<T>(items: T[], atOnce: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items].reverse();
  const one = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function plainDirect(bench: Bench, orders: number): Promise<Recorded> {
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

async function recordInBatches(bench: Bench, orders: number, size: number, atOnce: number): Promise<Recorded> {
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

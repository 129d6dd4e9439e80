/**
 * The rest of the shop, as a process of its own: at a fixed rate, a query that has nothing to do with the sale, on a
 * connection of its own through the same database, and GET /livez of the API. Latency is counted from when each was due.
 */
import pg from 'pg';
import { Agent, request } from 'undici';
import { ready } from './child.ts';
import { quantile } from './stats.ts';

const EVERY_MS = 10;
const PRODUCTS = 10_000;
const QUERY = { name: 'product', text: 'select name, price from products where product_id = $1' };
const CONNECTIONS = 5;

export type Felt = Record<'query' | 'livez', { p50: number; p99: number; count: number; failed: number }>;
export type Watching = { start: { port: number } } | { stop: true };

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: CONNECTIONS });
const agent = new Agent({ connections: CONNECTIONS });
let latencies: Record<'query' | 'livez', number[]> = { query: [], livez: [] };
let failed = { query: 0, livez: 0 };
let clock: NodeJS.Timeout | undefined;
const underWay = new Set<Promise<void>>();

function timed(what: 'query' | 'livez', due: number, work: Promise<unknown>): void {
  const done = work.then(
    () => void latencies[what].push(performance.now() - due),
    () => void (failed[what] += 1),
  );
  underWay.add(done);
  void done.finally(() => underWay.delete(done));
}

async function livez(port: number): Promise<void> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/livez`, { dispatcher: agent });
  await body.dump();
  if (statusCode !== 200) throw new Error(`/livez answered ${statusCode}`);
}

function start(port: number): void {
  latencies = { query: [], livez: [] };
  failed = { query: 0, livez: 0 };
  let due = performance.now();
  clock = setInterval(() => {
    for (; due <= performance.now(); due += EVERY_MS) {
      const product = 1 + Math.floor(Math.random() * PRODUCTS);
      timed('query', due, pool.query({ ...QUERY, values: [product] }));
      timed('livez', due, livez(port));
    }
  }, 1);
}

async function stop(): Promise<Felt> {
  clearInterval(clock);
  await Promise.all(underWay);
  const felt = (what: 'query' | 'livez') => ({
    p50: latencies[what].length === 0 ? Number.NaN : quantile(latencies[what], 0.5),
    p99: latencies[what].length === 0 ? Number.NaN : quantile(latencies[what], 0.99),
    count: latencies[what].length,
    failed: failed[what],
  });
  return { query: felt('query'), livez: felt('livez') };
}

process.on('message', (message: Watching) => {
  if ('start' in message) start(message.start.port);
  else void stop().then((felt) => process.send?.(felt));
});
// Its connections are open before anything is measured.
await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.query({ ...QUERY, values: [1] })));
ready({}, async () => {
  clearInterval(clock);
  await Promise.all([pool.end(), agent.close()]);
});

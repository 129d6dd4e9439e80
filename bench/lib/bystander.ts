/**
 * The rest of the shop, as a process of its own. At a fixed rate it asks for three things that have nothing to do with
 * the sale: a product from the database on a connection of its own; the same product from the design's server, which
 * takes it from the pool that the sale uses too (GET /catalogue/:productId, where a design has such a pool); and GET
 * /livez. A new one is sent when it is due, whether the ones before were answered or not.
 */
import pg from 'pg';
import { Agent, request } from 'undici';
import { ready } from './child.ts';
import { PRODUCTS, productQuery } from './product.ts';
import { quantile } from './stats.ts';

const EVERY_MS = 10;
/** The clock's grain: who is sent later than this after it was due waited for more than the timer. */
const GRAIN_MS = 2;
/** A visitor gives up after this time; what failed, however soon, counts as this long. */
const PATIENCE_MS = 5000;
const CONNECTIONS = 5;
/** Asked once per connection, to open it; not counted. */
const OPEN = '/livez?open';
const WARM_UP = 2000;
/**
 * As a proxy in front of the server has, kept open: enough that a slow answer is waited for at the server, not here.
 * They are opened first, since a server in Node.js accepts one new connection per turn of its event loop, and long
 * turns would be felt many times over.
 */
const HTTP_CONNECTIONS = 100;

/** Milliseconds. `reason` is the first failure's. */
export type Seen = { p50: number; p99: number; count: number; failed: number; reason?: string };
/** Without `catalogue` when the design has no pool that a shop could share with it. */
export type Felt = { query: Seen; livez: Seen; catalogue?: Seen };
export type Watching = { start: { port: number; catalogue: boolean } } | { stop: true };
type What = keyof Felt;

const pool = new pg.Pool({
  connectionString: process.env['DATABASE_URL'],
  ...{ max: CONNECTIONS, connectionTimeoutMillis: PATIENCE_MS, query_timeout: PATIENCE_MS },
});
pool.on('error', (error) => console.error(error)); // of one that idles: the next query opens another, or says why not
const agents = {
  catalogue: new Agent({ connections: HTTP_CONNECTIONS }),
  livez: new Agent({ connections: HTTP_CONNECTIONS }),
};
type Sent = { latencies: number[]; failed: number; reason?: string };
let sent = new Map<What, Sent>();
let clock: NodeJS.Timeout | undefined;
const underWay = new Set<Promise<void>>();

function timed(what: What, since: number, work: Promise<unknown>): void {
  const mine = sent.get(what) ?? { latencies: [], failed: 0 };
  sent.set(what, mine);
  const done = work.then(
    () => void mine.latencies.push(performance.now() - since),
    (error: unknown) => {
      mine.latencies.push(PATIENCE_MS);
      mine.failed += 1;
      mine.reason ??= error instanceof Error ? error.message || error.name : String(error);
    },
  );
  underWay.add(done);
  void done.finally(() => underWay.delete(done));
}

async function get(what: keyof typeof agents, port: number, path: string): Promise<void> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`, { dispatcher: agents[what], signal });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`GET ${path} answered ${statusCode}: ${text}`);
}

async function start({ port, catalogue }: { port: number; catalogue: boolean }): Promise<void> {
  const opened = catalogue ? (['livez', 'catalogue'] as const) : (['livez'] as const);
  await Promise.all(opened.flatMap((what) => Array.from({ length: HTTP_CONNECTIONS }, () => get(what, port, OPEN))));
  sent = new Map();
  let due = performance.now();
  clock = setInterval(() => {
    for (let now = performance.now(); due <= now; due += EVERY_MS, now = performance.now()) {
      const since = now - due > GRAIN_MS ? due : now;
      const product = 1 + Math.floor(Math.random() * PRODUCTS);
      timed('query', since, pool.query(productQuery(product)));
      timed('livez', since, get('livez', port, '/livez'));
      if (catalogue) timed('catalogue', since, get('catalogue', port, `/catalogue/${product}`));
    }
  }, 1);
}

async function stop(): Promise<Felt> {
  clearInterval(clock);
  await Promise.all(underWay);
  const [query, livez, catalogue] = [seen('query'), seen('livez'), sent.has('catalogue') && seen('catalogue')];
  return { query, livez, ...(catalogue ? { catalogue } : {}) };
}

function seen(what: What): Seen {
  const { latencies, failed, reason } = sent.get(what) ?? { latencies: [], failed: 0 };
  if (latencies.length === 0) return { p50: Number.NaN, p99: Number.NaN, count: 0, failed };
  const at = { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) };
  return { ...at, count: latencies.length, failed, ...(reason === undefined ? {} : { reason }) };
}

process.on('message', (message: Watching) => {
  const reply = 'start' in message ? start(message.start).then(() => ({ started: true })) : stop();
  void reply.then((told) => process.send?.(told));
});
// Its connections are open, and its code compiled, before anything is measured.
for (let n = 1; n <= WARM_UP; n += CONNECTIONS) {
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, more) => pool.query(productQuery(n + more))));
}
ready({}, async () => {
  clearInterval(clock);
  await Promise.all([pool.end(), ...Object.values(agents).map((agent) => agent.close())]);
});

/** The designs that are measured side by side: each a server that is started, given a sale, asked, and recounted. */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../scripts/servers/index.js';
import type { Bench } from '../bench.ts';
import { plainKeys } from '../peers/redis-script.ts';
import { endChild, startChild } from './child.ts';

/** What the stores say was sold, whatever buyers were told. */
export type Recount = { sold: number; total: number };

/** How many buyers were told that they won, and how many got an error or nothing, and may have won all the same. */
export type Told = { won: number; untold: number };

/** A design's server that runs. */
export type Target = {
  name: string;
  port: number;
  token: string;
  /** The server; its children belong to it. */
  pid: number;
  /** Whether it has GET /catalogue/:productId, by the pool that its sale uses: one application with the shop's pages. */
  catalogue: boolean;
  /** Whether winners go to the bench's worker (`pids.worker`): its CPU time is then part of what the design costs. */
  hasWorker: boolean;
  /** A new sale, open. @returns its id */
  newSale: (units: number) => Promise<string>;
  /** Undefined for a server that sells nothing. @throws {Error} when what the stores say does not fit together */
  recount: (saleId: string, told: Told) => Promise<Recount | undefined>;
  stop: () => Promise<void>;
};

/** `about` completes "NAME: …" in the results. */
export type Design = { name: string; about: string; start: (bench: Bench, options?: StartOptions) => Promise<Target> };
/** How it is started; nothing given is as it is measured. */
export type StartOptions = {
  /** Where the server writes its CPU profile when it ends. */
  profileTo?: string | undefined;
};

const PEERS = join(import.meta.dirname, '../peers');
const AMOUNT = 49_900;
let sales = 0;
const newSaleId = () => `bench-${process.pid}-${(sales += 1)}`;

const profiling = ({ profileTo }: StartOptions) =>
  profileTo === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileTo}`];

type Selling = Pick<Target, 'newSale' | 'recount'>;

async function startPeer(
  name: string,
  file: string,
  bench: Bench,
  selling: Selling,
  options: StartOptions = {},
): Promise<Target> {
  const env = { DATABASE_URL: bench.peers.url, REDIS_URL: bench.env['REDIS_URL'] ?? '', NODE_ENV: 'production' };
  const { child, first } = await startChild(join(PEERS, file), { env, execArgv: profiling(options) });
  const { port, catalogue = false } = first as { port: number; catalogue?: boolean };
  const stop = async () => {
    await bench.load.release();
    await endChild(child);
  };
  return { name, port, token: '', pid: child.pid ?? 0, catalogue, hasWorker: false, ...selling, stop };
}

const nothingSold = (): Selling => ({
  newSale: () => Promise.resolve(newSaleId()),
  recount: () => Promise.resolve(undefined),
});

const inPostgres = ({ peers: { pool } }: Bench): Selling => ({
  newSale: async (units) => {
    const saleId = newSaleId();
    await pool.query('insert into stock (sale_id, total, amount) values ($1, $2, $3)', [saleId, units, AMOUNT]);
    return saleId;
  },
  recount: async (saleId, told) => {
    const { rows } = await pool.query<Record<'total' | 'sold' | 'ordered' | 'orders' | 'journal', number>>(
      `select total, sold,
         (select coalesce(sum(qty), 0)::int from orders where sale_id = $1) as ordered,
         (select count(*)::int from orders where sale_id = $1) as orders,
         (select coalesce(sum(delta), 0)::int from journal where sale_id = $1) as journal
       from stock where sale_id = $1`,
      [saleId],
    );
    const [found] = rows;
    if (!found) throw new Error(`there is no sale ${saleId}`);
    const { total, sold, ordered, orders, journal } = found;
    agree(saleId, { sold, ordered, journal }, orders, told);
    return { total, sold: ordered };
  },
});

const inRedis = ({ redis }: Bench): Selling => ({
  newSale: async (units) => {
    const saleId = newSaleId();
    await redis.set(plainKeys(saleId)[0], units);
    await redis.set(`{peer:${saleId}}:total`, units);
    return saleId;
  },
  recount: async (saleId, told) => {
    const [stock, taken] = plainKeys(saleId);
    const holds = await redis.hlen(taken);
    const [left, total] = await redis.mget(stock, `{peer:${saleId}}:total`);
    agree(saleId, { sold: Number(total) - Number(left) }, holds, told);
    return { total: Number(total), sold: holds };
  },
});

/**
 * Every count must say the same, and so must the buyers who were told; each of the bench's buyers takes one unit.
 * @throws {Error} naming the counts that do not fit the orders
 */
export function agree(saleId: string, counts: Record<string, number>, orders: number, { won, untold }: Told): void {
  const wrong = Object.entries(counts).filter(([, count]) => count !== orders);
  if (orders < won || orders > won + untold) wrong.push([`told so (${untold} were told nothing)`, won]);
  if (wrong.length === 0) return;
  throw new Error(`sale ${saleId}: ${orders} orders, but ${wrong.map(([name, n]) => `${name} ${n}`).join(', ')}`);
}

const RECORDED_MS = 60_000;
const READY_MS = 30_000;

const inFlashgate = (bench: Bench, url: string): Selling => ({
  newSale: async (units) => {
    const saleId = newSaleId();
    const now = Date.now();
    const reply = await fetch(`${url}/admin/sales/${saleId}`, {
      method: 'PUT',
      headers: {
        ...{ authorization: `Bearer ${bench.secrets.ADMIN_TOKEN}`, 'content-type': 'application/json' },
        connection: 'close', // a server that is to end waits a second for one that is kept
      },
      body: JSON.stringify({
        ...{ name: 'bench', total: units, holdSeconds: 3600, maxPerReservation: 1 },
        startsAt: new Date(now - 60_000).toISOString(),
        endsAt: new Date(now + 86_400_000).toISOString(),
        price: { amount: AMOUNT, currency: 'EUR' },
      }),
    });
    if (reply.status !== 201) throw new Error(`the sale was not created: ${await reply.text()}`);
    return saleId;
  },
  recount: async (saleId, told) => {
    for (const end = performance.now() + RECORDED_MS; ;) {
      const { rows } = await bench.pool.query<Record<'total' | 'sold' | 'ordered' | 'orders' | 'journal', number>>(
        `select total, sold,
           (select coalesce(sum(qty), 0)::int from sale_orders where sale_id = $1 and status = 'PENDING_PAYMENT') as ordered,
           (select count(*)::int from sale_orders where sale_id = $1) as orders,
           (select coalesce(sum(delta), 0)::int from ledger_entries where sale_id = $1) as journal
         from sale_stock where sale_id = $1`,
        [saleId],
      );
      const [found] = rows;
      if (!found) throw new Error(`there is no sale ${saleId}`);
      const { total, sold, ordered, orders, journal } = found;
      if (orders < told.won && performance.now() < end) {
        await sleep(50); // still in the queue
        continue;
      }
      // A hold that the queue did not take in time waits for a keeper, and the bench runs none.
      const unsent = await bench.redis.zcard(`{sale:${saleId}}:unqueued`);
      const atGate = Number(await bench.redis.hget(`{sale:${saleId}}:sale`, 'held'));
      if (atGate < orders || atGate - unsent > orders)
        throw new Error(`sale ${saleId}: ${orders} orders, ${atGate} held`);
      agree(saleId, { sold, ordered, journal }, orders, told);
      return { total, sold: ordered };
    }
  },
});

/** Starts a command of flashgate's that runs until it is ended (SIGTERM), with its output in the run's folder. */
export function runFlashgate(
  { flashgate, env, secrets, folder }: Pick<Bench, 'flashgate' | 'env' | 'secrets' | 'folder'>,
  command: 'serve' | 'work',
  settings: Record<string, string> = {},
) {
  const log = openSync(join(folder, `${command}.log`), 'a');
  const usual = { LOG_LEVEL: 'warn', NODE_ENV: 'production', HOST: '127.0.0.1' };
  const child = flashgate([command], {
    env: { ...env, ...secrets, ...usual, ...settings },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  return child;
}

/**
 * Starts `flashgate serve` on a free port and waits until it is ready; its worker is the bench's.
 * @throws {Error} when it ends first, or is not ready after 30 s; its log is in the run's folder
 */
export async function startFlashgate(
  bench: Bench,
  name: string,
  settings: Record<string, string>,
  { profileTo }: StartOptions = {},
): Promise<Target> {
  const port = await freePort();
  const options = profiling({ profileTo });
  const child = runFlashgate(bench, 'serve', { ...settings, PORT: String(port), NODE_OPTIONS: options.join(' ') });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(`${url}/readyz`, child.done);
  const stop = async () => {
    await bench.load.release();
    child.kill('SIGTERM');
    await child.done;
  };
  const own = { name, port, token: bench.secrets.SERVICE_TOKEN, pid: child.pid ?? 0 };
  return { ...own, catalogue: false, hasWorker: true, ...inFlashgate(bench, url), stop };
}

async function untilAnswers(url: string, ended: Promise<number>): Promise<void> {
  let code: number | undefined;
  void ended.then((value) => (code = value));
  for (const end = performance.now() + READY_MS; performance.now() < end;) {
    if (code !== undefined) throw new Error(`flashgate ended before it was ready (exit code ${code})`);
    const ok = await fetch(url, { headers: { connection: 'close' } }).then(
      (reply) => reply.ok,
      () => false, // it does not listen yet
    );
    if (ok) return;
    await sleep(50);
  }
  throw new Error(`flashgate was not ready after ${READY_MS / 1000} s`);
}

/** A plain design of `bench/peers`. */
const peer = (name: string, about: string, file: string, selling: (bench: Bench) => Selling): Design => ({
  name,
  about,
  start: (bench, options) => startPeer(name, file, bench, selling(bench), options),
});

/** flashgate with these settings. */
const own = (name: string, about: string, settings: Record<string, string>): Design => ({
  name,
  about,
  start: (bench, options) => startFlashgate(bench, name, settings, options),
});

const ONE = { API_PROCESSES: '1' };

/** Everything that is compared, by the name that the parts use. */
export const DESIGNS = {
  bare: peer(
    'bare Fastify route',
    'same schema, "sold out" from a text made once; sells nothing',
    'bare.ts',
    nothingSold,
  ),
  gathered: peer(
    'bare, answers gathered',
    'the same, the answers of one turn of the event loop written together, as flashgate does',
    'bare-gathered.ts',
    nothingSold,
  ),
  serialised: peer(
    'bare, answer serialised',
    'the same, the answer written by Fastify’s compiled serialiser each time',
    'bare-serialised.ts',
    nothingSold,
  ),
  redis: peer(
    'one EVALSHA per request',
    'the plain gate: atomic script, ioredis with auto-pipelining, winners kept in Redis only',
    'redis.ts',
    inRedis,
  ),
  update: peer(
    'conditional UPDATE',
    'one prepared statement with order and journal, pool of 100',
    'sql-update.ts',
    inPostgres,
  ),
  forUpdate: peer(
    'SELECT … FOR UPDATE',
    'the row locked first, prepared statements, pool of 100',
    'sql-for-update.ts',
    inPostgres,
  ),
  memory: peer(
    'UPDATE + memory',
    'conditional UPDATE, the sold-out answer kept in the process for 100 ms',
    'sql-memory.ts',
    inPostgres,
  ),
  queue: peer(
    'UPDATE + memory + queue',
    'the same, four transactions at a time, a bounded line in front',
    'sql-queue.ts',
    inPostgres,
  ),
  noLatch: own('flashgate, no latch', 'one process, every request a share of a batched script call', {
    ...ONE,
    LATCH_MS: '0',
  }),
  flashgate: own('flashgate', 'one process, as shipped', ONE),
  allCores: own('flashgate, all cores', 'as shipped, one process per core', {}),
} satisfies Record<string, Design>;

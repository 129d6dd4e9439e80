/**
 * A full pass over a sale with a million holds, while buyers reserve: how long it takes, how long it keeps Redis from
 * everybody else at most, how much memory it needs, and what the buyers notice.
 *
 * Servers of its own, a few minutes, stops by itself: `node_modules/node/bin/node bench/reconcile/main.ts [HOLDS]`.
 * It fails when a pass did not do exactly what there was to do. docs/reconcile.md has the figures of one run.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { startServices } from '../../scripts/services.js';
import { readConfig } from '../../src/config.ts';
import { script } from '../../src/gate/scripts.ts';
import { migrate } from '../../src/ledger/migrate.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
import { createLogger, wire, type Wired } from '../../src/wiring.ts';
import { disagree, fillLedger, SALE, type Disagreement } from './fill.ts';
import { startLoad, type Latencies } from './load.ts';
import type { PassReport } from './pass.ts';

const holds = Number(process.argv[2] ?? 1_000_000);
/** In the second pass: what the gate forgot, what is back again, what the queue lost. */
const wrong: Disagreement = { forgotten: holds / 100, backAgain: holds / 100, lost: holds / 1000 };
const QUIET_MS = 15_000;
const KEEPER_MS = 30_000;
/** Also logged by Redis: everything that takes longer, in microseconds. */
const SLOW_US = 200;

const say = (line: string) => process.stdout.write(`${line}\n`);
const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
const seconds = (from: number) => `${((performance.now() - from) / 1000).toFixed(1)} s`;

const services = await startServices({ name: 'reconcile', fast: true, say });
// The buyers' holds never get orders here, and must not be taken for lost by the queue.
for (const [name, value] of Object.entries({ ...services.env, LOST_GRACE_MS: '1800000', UNQUEUED_GRACE_MS: '1700000' }))
  process.env[name] = value;
const config = readConfig({ ...process.env, LOG_LEVEL: 'warn' });
const wired = wire(config, createLogger(config));
const redis = new Redis(config.REDIS_URL);
const db = new pg.Client({ connectionString: config.DATABASE_URL });
try {
  say(
    `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  );
  await db.connect();
  await migrate(config.DATABASE_URL);
  await fill(wired);
  await measure();
} finally {
  await db.end();
  redis.disconnect();
  await wired.close();
  await services.stop();
}

async function fill({ stores }: Wired): Promise<void> {
  let at = performance.now();
  await fillLedger(db, holds, wrong);
  say(`ledger: ${holds.toLocaleString('en')} live orders, ${seconds(at)}`);
  await watchSlow();
  at = performance.now();
  await openGate(stores, SALE, await tokenFor(stores.pool, SALE));
  say(`gate rebuilt from it: ${seconds(at)}; longest in Redis: ${await slowest()}`);
  const [, used] = /used_memory_human:(\S+)/.exec(await redis.info('memory')) ?? [];
  say(`Redis has ${used ?? 'unknown'} of memory in use`);
}

async function measure(): Promise<void> {
  const quiet = startLoad(wired.stores.gate);
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  tell('reserve without a pass', await quiet.stop());
  await besideKeeper();
  await pass('everything agrees', { adopted: 0, released: 0, resent: 0 });
  await disagree(redis, holds, wrong);
  const { forgotten: adopted, backAgain: released, lost: resent } = wrong;
  await pass('2 in 100 wrong', { adopted, released, resent });
}

/** A part of a pass as a keeper goes about it: a quarter of a second, then a pause of KEEPER_INTERVAL_MS. */
async function besideKeeper(): Promise<void> {
  const child = fork(join(import.meta.dirname, 'keeper.ts'));
  await once(child, 'message');
  await watchSlow();
  const load = startLoad(wired.stores.gate);
  await new Promise((resolve) => setTimeout(resolve, KEEPER_MS));
  const latencies = await load.stop();
  const exited = once(child, 'exit');
  child.disconnect();
  await exited;
  const [, scans = '0'] = /cmdstat_hscan:calls=(\d+)/.exec(await redis.info('commandstats')) ?? [];
  if (scans === '0') throw new Error('the keeper has not looked at a single hold');
  say(`\nbeside a keeper, which looked at ${scans} pages of holds in ${KEEPER_MS / 1000} s`);
  say(`  longest in Redis: ${await slowest()}`);
  tell('  reserve', latencies);
}

/** The whole at once, without a pause, as `flashgate reconcile --once` does it. */
async function pass(name: string, expected: Partial<PassReport['done']>): Promise<void> {
  await watchSlow();
  const load = startLoad(wired.stores.gate);
  const child = fork(join(import.meta.dirname, 'pass.ts'), [SALE]);
  const [[report]] = await Promise.all([once(child, 'message') as Promise<[PassReport]>, once(child, 'exit')]);
  const latencies = await load.stop();
  for (const [what, count] of Object.entries(expected)) {
    const done = report.done[what as keyof PassReport['done']];
    if (done !== count) throw new Error(`the pass should have ${what} ${count}, and has ${done}`);
  }
  say(`\npass: ${name}`);
  say(`  ${JSON.stringify(report.done)}`);
  say(`  ${(report.ms / 1000).toFixed(1)} s in ${report.steps} steps, the longest ${ms(report.longestStepMs)}`);
  say(
    `  peak memory of its process ${Math.round(report.peakRssKiB / 1024)} MiB, of which ${Math.round(report.rssBeforeKiB / 1024)} MiB before it began`,
  );
  say(`  longest in Redis: ${await slowest()}`);
  say(`  usual in Redis: ${await usual()}`);
  tell('  reserve beside it', latencies);
}

function tell(what: string, { count, perSecond, p50, p99, max }: Latencies): void {
  const load = loadavg().map((value) => value.toFixed(1));
  say(
    `${what}: ${count} at ${perSecond} per second, p50 ${ms(p50)}, p99 ${ms(p99)}, max ${ms(max)} (load ${load.join(' ')})`,
  );
}

async function watchSlow(): Promise<void> {
  await redis.config('SET', 'slowlog-log-slower-than', String(SLOW_US));
  await redis.config('SET', 'slowlog-max-len', '100000');
  await redis.slowlog('RESET');
  await redis.config('RESETSTAT');
}

/** The longest call of each command and script since `watchSlow`. */
async function slowest(): Promise<string> {
  const names = new Map(
    ['reserve', 'release', 'adopt', 'queued', 'open', 'settle'].map((name) => [script(name).sha1, `${name}.lua`]),
  );
  const longest = new Map<string, number>();
  for (const [, , us, [command = '', sha = '']] of (await redis.slowlog('GET', 100_000)) as [
    number,
    number,
    number,
    string[],
  ][]) {
    const name = names.get(sha) ?? command.toUpperCase();
    longest.set(name, Math.max(longest.get(name) ?? 0, us));
  }
  const told = [...longest].sort(([, a], [, b]) => b - a).map(([name, us]) => `${name} ${ms(us / 1000)}`);
  return told.length > 0 ? told.join(', ') : `nothing over ${SLOW_US} µs`;
}

/** What Redis says of the calls that a pass is made of, in microseconds. */
async function usual(): Promise<string> {
  const stats = await redis.info('latencystats');
  const told = ['hscan', 'hmget', 'evalsha'].flatMap((name) => {
    const [, text] = new RegExp(`latency_percentiles_usec_${name}:(\\S+)`).exec(stats) ?? [];
    return text === undefined ? [] : [`${name.toUpperCase()} ${text.replaceAll(',', ' ')} µs`];
  });
  return told.join(', ');
}

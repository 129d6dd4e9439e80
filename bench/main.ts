/** The bench: starts what is measured, runs the parts one after the other, writes the results. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { migrate } from '../src/ledger/migrate.ts';
import type { Bench, Part, Section, StartFlashgate } from './bench.ts';
import { killChildren } from './lib/child.ts';
import { parentOf } from './lib/cpu.ts';
import { Load } from './lib/load.ts';
import { runFlashgate } from './lib/targets.ts';
import { write } from './lib/results.ts';
import { PARTS } from './parts.ts';
import { FULL, QUICK } from './sizes.ts';

export type Options = { quick: boolean; only: string[] };
type System = { env: Record<string, string>; folder: string; flashgate: StartFlashgate; isEnding: () => boolean };

/** @returns the parts named, all if none is. @throws {Error} naming those that exist */
export function chosen(only: string[]): Part[] {
  const unknown = only.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) {
    throw new Error(`There is no part ${unknown.join(', ')}. Parts: ${PARTS.map(({ name }) => name).join(', ')}`);
  }
  return only.length === 0 ? PARTS : PARTS.filter(({ name }) => only.includes(name));
}

/**
 * @returns the exit code: 0, whatever was reached; a goal that is missed is shown, not punished
 * @throws {Error} when something could not be measured, or a design oversold
 */
export async function bench(system: System, options: Options, say: (line: string) => void): Promise<number> {
  const parts = chosen(options.only);
  const { context, close } = await prepare(system, options, say);
  const asked = askedToEnd(system);
  try {
    await Promise.race([asked.promise, runAll(context, parts, options)]);
    return 0;
  } finally {
    asked.stop();
    await close();
  }
}

async function runAll(context: Bench, parts: Part[], options: Options): Promise<void> {
  const started = performance.now();
  const sections: Section[] = [];
  for (const part of parts) {
    const at = performance.now();
    context.say(`\n${part.name}`);
    sections.push(await part.run(context));
    context.say(`${part.name}: ${Math.round((performance.now() - at) / 1000)} s`);
    context.load = await context.load.renewed();
  }
  const path = await write(context, sections, { seconds: (performance.now() - started) / 1000, ...options });
  context.say(`\nwritten: ${path}`);
}

/** A promise that rejects once Ctrl-C or a signal has asked for the end. */
function askedToEnd({ isEnding }: Pick<System, 'isEnding'>) {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined); // also when the work was done first
  const timer = setInterval(() => {
    if (isEnding()) reject(new Error('ended before everything was measured'));
  }, 100);
  return { promise, stop: () => clearInterval(timer) };
}

async function prepare(system: System, { quick }: Options, say: (line: string) => void) {
  const { folder, flashgate } = system;
  // Some forty servers are started one after the other: most of the time would go into compiling them. Two folders, since
  // flashgate has other flags of V8 than the plain designs, and either would throw the other's code away.
  const compiled = (whose: string) => (quick ? { NODE_COMPILE_CACHE: join(folder, `compiled-${whose}`) } : {});
  Object.assign(process.env, compiled('peers'));
  const env: Record<string, string> = { ...system.env, ...compiled('flashgate') };
  const databaseUrl = env['DATABASE_URL'] ?? '';
  await migrate(databaseUrl);
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 });
  const peers = await createPeersDatabase(databaseUrl, pool);
  const redis = new Redis(env['REDIS_URL'] ?? '');
  for (const store of [redis, pool, peers.pool]) store.on('error', () => undefined); // whoever asks it is told
  const secrets = newSecrets();
  const worker = runFlashgate({ flashgate, env, secrets, folder }, 'work');
  const context: Bench = {
    ...{ env, folder, pool, peers, redis, flashgate, say },
    sizes: quick ? QUICK : FULL,
    secrets,
    pids: { redis: await redisPid(redis), postgres: await postmasterPid(pool), worker: worker.pid ?? 0 },
    load: await Load.start(),
  };
  const close = async () => {
    killChildren();
    worker.kill('SIGTERM');
    await worker.done;
    redis.disconnect();
    await Promise.all([pool.end(), peers.pool.end()]);
  };
  return { context, close };
}

function newSecrets() {
  const secret = () => randomBytes(24).toString('hex');
  const webhook = `whsec_${randomBytes(24).toString('base64')}`;
  return { SERVICE_TOKEN: secret(), ADMIN_TOKEN: secret(), WEBHOOK_SECRET: webhook };
}

/** A database of the plain designs' own, on the same server. */
async function createPeersDatabase(databaseUrl: string, admin: pg.Pool) {
  const name = `flashgate_bench_${randomBytes(4).toString('hex')}`;
  await admin.query(`create database ${name}`);
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 2 });
  await pool.query(readFileSync(join(import.meta.dirname, 'peers/schema.sql'), 'utf8'));
  return { url: url.href, pool };
}

async function redisPid(redis: Redis): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
}

/** The parent of every session. */
async function postmasterPid(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  return parentOf(rows[0]?.pid ?? 0);
}

/** On what the figures were measured. */
import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Bench } from '../bench.ts';

const require = createRequire(import.meta.url);
const PACKAGES = ['fastify', 'ioredis', 'pg', 'fauxqs', '@aws-sdk/client-sqs'];

/** Lines of a table: what, value. @throws what the stores say when they are away, and when a package is not installed */
export async function machine({
  redis,
  pool,
  env,
}: Pick<Bench, 'redis' | 'pool' | 'env'>): Promise<[string, string][]> {
  const [, version = 'unknown'] = /(?:valkey|redis)_version:(\S+)/.exec(await redis.info('server')) ?? [];
  const setting = async (name: string) =>
    (await pool.query<Record<string, string>>(`show ${name}`)).rows[0]?.[name] ?? 'unknown';
  const [, appendonly = ''] = await redis.config('GET', 'appendonly');
  return [
    ['commit', commit(import.meta.dirname)],
    ['date', new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC'],
    ['processor', `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown'}`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GiB`],
    ['kernel', release()],
    [
      'load average at the end',
      loadavg()
        .map((load) => load.toFixed(1))
        .join(' '),
    ],
    ['Node.js', process.version],
    ['Redis', `${version}, appendonly ${appendonly}`],
    [
      'Postgres',
      `${await setting('server_version')}, fsync ${await setting('fsync')}, synchronous_commit ${await setting('synchronous_commit')}`,
    ],
    ['queue', env['SQS_ENDPOINT'] === undefined ? 'AWS' : 'fauxqs, a local stand-in that speaks the SQS protocol'],
    ['packages', PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(', ')],
  ];
}

/**
 * The commit that a folder's files are of, and whether they are as committed. Of a folder that git does not know, or on a
 * machine without git: that, and why.
 */
export function commit(folder: string): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    const changed = git('status', '--porcelain').split('\n').filter(Boolean).length;
    const state = changed === 0 ? 'nothing changed since' : `**${changed} files changed since**`;
    return `${git('rev-parse', '--short=12', 'HEAD')}, ${state}`;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return `unknown: ${error.message.trim().split('\n').at(-1) ?? ''}`; // git's own reason, or that there is no git
  }
}

function versionOf(name: string): string {
  const path = require.resolve.paths(name)?.map((folder) => `${folder}/${name}/package.json`) ?? [];
  for (const each of path) {
    try {
      return (JSON.parse(readFileSync(each, 'utf8')) as { version: string }).version;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }
  throw new Error(`${name} is not installed`);
}

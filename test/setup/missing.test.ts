/** What is missing: repaired where the set-up can, and otherwise told with the command to type. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { type Server, createServer } from 'node:net';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { findRedis, freePort, startPostgres, startQueue, startRedis } from '../../scripts/servers/index.js';
import { makeClone } from './clone.ts';

const ROOT = join(import.meta.dirname, '../..');
const UNPACKED = join(ROOT, '.flashgate/redis');

let folder: string;
let count = 0;
beforeEach(() => {
  folder = join(inject('services').folder, `missing-${String(process.pid)}-${String((count += 1))}`);
  mkdirSync(folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('no Redis on PATH', () => {
  test.each([
    ['dnf', 'sudo dnf install valkey'],
    ['apk', 'sudo apk add valkey'],
    ['pacman', 'sudo pacman -S valkey'],
  ])('a system with %s is told: %s', async (tool, command) => {
    writeFileSync(join(folder, tool), '');
    vi.stubEnv('PATH', folder);
    const error = await findRedis(() => undefined, join(folder, 'redis')).catch(String);
    expect(error).toContain(`Type: ${command}`);
    expect(error).toContain('set REDIS_URL');
  });

  // Where Redis is on PATH nothing is ever unpacked.
  test.runIf(existsSync(UNPACKED)).each([
    [
      'the server is cut off',
      (home: string) => {
        truncateSync(join(home, 'usr/bin/redis-server'), 1000);
      },
    ],
    [
      'the server is missing',
      (home: string) => {
        rmSync(join(home, 'usr/bin'), { recursive: true });
      },
    ],
  ])('an unpacked package of which %s is unpacked anew', async (_what, damage) => {
    const home = join(folder, 'redis');
    cpSync(UNPACKED, home, { recursive: true, verbatimSymlinks: true });
    const said: string[] = [];
    const whole = await findRedis((line) => said.push(line), home);
    expect(said).toEqual([]);
    damage(home);
    const repaired = await findRedis((line) => said.push(line), home);
    expect(said).toEqual([expect.stringContaining('downloading')]);
    expect(repaired).toEqual(whole);
  });
});

test('without npm, and without its dependencies, each way in says what to type', () => {
  const clone = makeClone('bare', { installed: false });
  const link = join(folder, 'flashgate');
  symlinkSync(join(clone, 'bin/flashgate'), link);
  const run = (command: string, args: string[], PATH: string) =>
    spawnSync(command, args, { cwd: folder, env: { PATH }, encoding: 'utf8' });

  const program = run(link, ['--help'], ['/usr/bin', '/bin'].join(delimiter));
  expect([program.status, program.stderr]).toEqual([1, expect.stringContaining(`Type: cd '${clone}' && npm ci`)]);
  const script = run(process.execPath, [join(clone, 'scripts/run.js'), 'check'], folder);
  expect([script.status, script.stderr]).toEqual([1, expect.stringContaining('npm is not on PATH. Install Node.js')]);
});

test('flashgate runs through a symlink, from any folder', () => {
  const link = join(folder, 'flashgate');
  symlinkSync(join(ROOT, 'bin/flashgate'), link);
  const { status, stdout } = spawnSync(link, ['--help'], { cwd: '/', encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, expect.stringContaining('Usage: flashgate')]);
});

describe('a port that somebody else took a moment ago', () => {
  let blocker: Server;
  beforeEach(async () => {
    blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
  });
  afterEach(() => {
    blocker.close();
  });

  test.each([
    ['postgres', startPostgres],
    ['redis', startRedis],
    ['fauxqs', startQueue],
  ])('%s gets another one', async (_name, start) => {
    const { port } = blocker.address() as { port: number };
    const picks = [port, 0];
    const server = await start({
      folder,
      say: () => undefined,
      pickPort: async () => picks.shift() || (await freePort()),
    });
    expect([picks, server.port === port]).toEqual([[], false]);
    await server.stop();
  });
});

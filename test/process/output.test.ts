/** A log that cannot be written is no reason to serve nobody, nor to stay when it is time to go. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { settings } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

let stores: Stores;
let folder: string;
const running = new Set<ChildProcess>();
beforeAll(async () => {
  stores = await freshStores();
  folder = mkdtempSync(join(tmpdir(), 'flashgate-output-'));
});
afterAll(async () => {
  for (const { pid } of running) process.kill(-Number(pid), 'SIGKILL'); // its processes too, who may not notice
  rmSync(folder, { recursive: true });
  await stores.drop();
});

/** `serve` whose standard output is this file. */
async function serveInto(file: string, env: Record<string, string>) {
  const port = await freePort();
  const output = openSync(file, 'a');
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../src/main.ts'), 'serve'], {
    env: { PATH: process.env['PATH'] ?? '', ...settings, ...stores.env, LOG_LEVEL: 'info', PORT: String(port), ...env },
    stdio: ['ignore', output, 'inherit'],
    detached: true,
  });
  running.add(child);
  const ended = once(child, 'exit').finally(() => running.delete(child));
  const livez = () =>
    fetch(`http://127.0.0.1:${port}/livez`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(5000),
    }).then(
      ({ status }) => status,
      () => 0,
    );
  return { child, ended, livez };
}

const SOON = { timeout: 40_000, interval: 100 };
/** With /dev/full, and prlimit, which makes a disk full for one process. */
const onLinux = test.runIf(process.platform === 'linux');

onLinux.each(['1', '2'])(
  'a full disk from the start, %s processes: it serves, and ends when it is told to',
  async (processes) => {
    const { child, ended, livez } = await serveInto('/dev/full', { API_PROCESSES: processes });
    await expect.poll(livez, SOON).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  },
);

onLinux('a disk that is full for a while: what was to be said meanwhile is said later', async () => {
  const file = join(folder, 'log');
  const { child, ended, livez } = await serveInto(file, { API_PROCESSES: '2' });
  const log = () => readFileSync(file, 'utf8');
  await expect.poll(log, SOON).toContain('all API processes listen');
  const most = (bytes: string) => execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:`]);
  const others = () =>
    execFileSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' })
      .trim()
      .split('\n');
  const before = others();
  most('1');
  child.kill('SIGHUP'); // which the first process would tell
  await expect.poll(() => others().filter((pid) => before.includes(pid)), SOON).toEqual([]);
  expect(await livez()).toBe(200);
  expect(log()).not.toContain('replacing all API processes');
  most('unlimited');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  expect(log()).toMatch(/replacing all API processes[^]*stopping all API processes/);
});

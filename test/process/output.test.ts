/** A log that cannot be written is no reason to serve nobody, nor to stay when it is time to go. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { settings } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { childrenOf, start } from './program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

let stores: Stores;
let folder: string;
beforeAll(async () => {
  stores = await freshStores();
  folder = mkdtempSync(join(tmpdir(), 'flashgate-output-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await stores.drop();
});

/** `serve` whose standard output is this file. */
async function serveInto(file: string, processes: string) {
  const port = await freePort();
  const output = openSync(file, 'a');
  const own = { LOG_LEVEL: 'info', PORT: String(port), API_PROCESSES: processes };
  const program = start(['serve'], { ...settings, ...stores.env, ...own }, output);
  closeSync(output);
  const livez = () =>
    fetch(`http://127.0.0.1:${port}/livez`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(5000),
    }).then(
      ({ status }) => status,
      () => 0,
    );
  return { ...program, livez };
}

const SOON = { timeout: 40_000, interval: 100 };
/** With /dev/full, and prlimit, which makes a disk full for one process. */
const onLinux = test.runIf(process.platform === 'linux');

onLinux.each(['1', '2'])(
  'a full disk from the start, %s processes: it serves, and ends when it is told to',
  async (processes) => {
    const { kill, ended, livez } = await serveInto('/dev/full', processes);
    await expect.poll(livez, SOON).toBe(200);
    kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  },
);

onLinux('a disk that is full for a while: what was to be said meanwhile is said later', async () => {
  const file = join(folder, 'log');
  const { child, kill, ended, livez } = await serveInto(file, '2');
  const log = () => readFileSync(file, 'utf8');
  await expect.poll(log, SOON).toContain('all API processes listen');
  const most = (bytes: string) => execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:`]);
  const before = childrenOf({ child });
  most('1');
  kill('SIGHUP'); // which the first process would tell
  await expect.poll(() => childrenOf({ child }).filter((pid) => before.includes(pid)), SOON).toEqual([]);
  expect(await livez()).toBe(200);
  expect(log()).not.toContain('replacing all API processes');
  most('unlimited');
  kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(log()).toMatch(/replacing all API processes[^]*stopping all API processes/);
});

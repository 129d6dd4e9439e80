/** What a request leaves behind is short-lived in every API process, whatever V8 saw while it started. */
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { freshStores, type Stores } from '../support/stores.ts';
import { childrenOf, said, serve } from './program.ts';

vi.setConfig({ testTimeout: 60_000 });

const PROBE = join(import.meta.dirname, 'heap-probe.ts');
const BORN_OLD = /born old: (\d+)/;

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

/** Of a process of the pinned Node.js that is left alone. */
async function bornOld(): Promise<string | undefined> {
  const code = 'process.kill(process.pid, "SIGUSR2"); process.stdin.resume()';
  const child = spawn(process.execPath, ['--import', PROBE, '-e', code], { stdio: ['pipe', 'ignore', 'pipe'] });
  child.stdin.end();
  return BORN_OLD.exec(await text(child.stderr))?.[1];
}

// Should this turn red with a newer Node.js: keepShortLivedYoung is needed no more.
test('the pinned Node.js takes short-lived arrays for long-lived ones, when it is left alone', async () => {
  // Not each time: it depends on when it collects, and compiles, beside all else that this machine does.
  await expect.poll(bornOld, { timeout: 50_000, interval: 10 }).toMatch(/^[1-9]/);
});

test.each(['1', '2'])('an API process does not, of %s', async (processes) => {
  const own = { PORT: String(await freePort()), API_PROCESSES: processes, NODE_OPTIONS: `--import ${PROBE}` };
  const program = await serve({ ...stores.env, ...own });
  const [pid] = processes === '1' ? [program.child.pid] : childrenOf(program);
  process.kill(pid ?? 0, 'SIGUSR2');
  expect(await said(program, BORN_OLD)).toBe('0');
  program.kill('SIGTERM');
  expect(await program.ended).toMatchObject({ code: 0 });
});

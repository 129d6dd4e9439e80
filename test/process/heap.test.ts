/** What a request leaves behind is short-lived in every API process, whatever V8 saw while it started. */
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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

test('the pinned Node.js takes short-lived arrays for long-lived ones, when it is left alone', async () => {
  // Should this turn red with a newer Node.js: keepShortLivedYoung is needed no more.
  const code = 'process.kill(process.pid, "SIGUSR2"); process.stdin.resume()';
  const child = spawn(process.execPath, ['--import', PROBE, '-e', code], { stdio: ['pipe', 'ignore', 'pipe'] });
  const [line] = (await once(child.stderr.setEncoding('utf8'), 'data')) as [string];
  child.stdin.end();
  expect(line).toMatch(BORN_OLD);
  expect(line).not.toContain('born old: 0');
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

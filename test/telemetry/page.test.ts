/** One page for all API processes: what each has answered, added up. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { until } from '../ledger/house.ts';
import { said, start } from '../process/program.ts';
import { settings } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

test('answers of two processes', { timeout: 60_000 }, async () => {
  const [PORT, METRICS_PORT] = [String(await freePort()), String(await freePort())];
  const program = start(['serve'], { ...settings, ...stores.env, PORT, METRICS_PORT, API_PROCESSES: '2' });
  await said(program, /(all API processes listen)/);
  const page = async () => (await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).text();
  const presses = 60;
  for (let n = 0; n < presses; n += 1) {
    // A connection each, so that both processes get some.
    const reply = await fetch(`http://127.0.0.1:${PORT}/nowhere`, { headers: { connection: 'close' } });
    expect(reply.status).toBe(404);
    await reply.arrayBuffer();
  }
  await until(async () => (await page()).includes(`flashgate_answers_total{code="not_found"} ${presses}`));
  const text = await page();
  expect(text).toMatch(/^# TYPE flashgate_gate_call_seconds histogram$/m);
  expect(text).not.toContain('flashgate_keeper_'); // a process shows its own part only
  program.kill('SIGTERM');
  expect((await program.ended).code).toBe(0);
});

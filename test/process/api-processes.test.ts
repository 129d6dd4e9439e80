/** `serve` with several API processes: one that cannot start says why and ends, and is tried again beside the others. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { settings } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { childrenOf, expectReason, serve, start } from './program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 90_000 });

const TWO = { API_PROCESSES: '2', LOG_LEVEL: 'info' };

let stores: Stores;
let db: pg.Client;
beforeAll(async () => {
  stores = await freshStores();
  db = new pg.Client({ connectionString: stores.databaseUrl });
  await db.connect();
});
afterAll(async () => {
  await db.end();
  await stores.drop();
});

const makeNewer = () => db.query(`insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())`);
const makeAsItWas = () => db.query(`delete from schema_migrations where name = '9999_from_the_future'`);

test('a schema that is newer: the reason, exit 1', async () => {
  await makeNewer();
  const ended = await start(['serve'], { ...settings, ...stores.env, ...TWO }).ended.finally(makeAsItWas);
  expectReason(ended, 'it has 9999_from_the_future, which this version does not know: run a newer flashgate');
});

test('one that dies while the schema is newer is tried again until it fits; the other one serves meanwhile', async () => {
  const api = await serve({ ...stores.env, ...TWO });
  const count = (text: string) => api.output().split(text).length - 1;
  await expect.poll(() => count('"msg":"the API listens"'), { timeout: 40_000 }).toBe(2);
  await makeNewer();
  try {
    const [pid] = childrenOf(api);
    process.kill(Number(pid), 'SIGKILL');
    await expect.poll(() => count('an API process died'), { timeout: 40_000 }).toBeGreaterThan(2);
    expect((await fetch(`${api.url}/livez`)).status).toBe(200);
  } finally {
    await makeAsItWas();
  }
  await expect.poll(() => count('"msg":"the API listens"'), { timeout: 40_000 }).toBe(3);
  api.kill('SIGTERM');
  expect((await api.ended).code).toBe(0);
});

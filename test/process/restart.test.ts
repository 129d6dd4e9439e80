/** SIGHUP: new API processes in the place of the old ones, while buyers go on asking; or the old ones stay. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { asAdmin, asShop, saleSettings } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { startLoad, type Asked } from './load.ts';
import { childrenOf, said, serve, type Program } from './program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 120_000 });

let stores: Stores;
let db: pg.Client;
let api: Program & { url: string };
beforeAll(async () => {
  stores = await freshStores();
  db = new pg.Client({ connectionString: stores.databaseUrl });
  await db.connect();
  api = await serve({ ...stores.env, API_PROCESSES: '2', LOG_LEVEL: 'info' });
  await said(api, /(all API processes listen)/);
});
afterAll(async () => {
  await db.end();
  await stores.drop();
});

const SOON = { timeout: 60_000, interval: 20 };
/** The API processes that there are now. */
const pids = () => childrenOf(api);
const count = (text: string) => api.output().split(text).length - 1;
const LISTENS = '"msg":"the API listens"';
const STOPPING = '"msg":"stopping"';
const BEGINS = 'replacing all API processes';
const REPLACED = 'all API processes are replaced';

async function putSale(saleId: string, total: number) {
  const init = { method: 'PUT', headers: { ...asAdmin, 'content-type': 'application/json', connection: 'close' } };
  const answer = await fetch(`${api.url}/admin/sales/${saleId}`, {
    ...init,
    body: JSON.stringify(saleSettings({ total })),
  });
  expect(answer.status).toBe(201);
}

/** Until there is nobody but as many as before, all of them new. */
async function expectNew(before: number[]): Promise<void> {
  await expect.poll(() => pids().length, SOON).toBe(2);
  expect(pids().filter((pid) => before.includes(pid))).toEqual([]);
}

test('under load: none of the old ones is left, as many as before, and every request has its answer', async () => {
  await putSale('much', 1_000_000);
  await putSale('little', 1);
  let buyers = 0;
  const press = (saleId: string): Asked => ({
    ...{ method: 'POST', path: `/sales/${saleId}/reserve` },
    headers: { ...asShop, 'content-type': 'application/json' },
    body: JSON.stringify({ userId: `u-${(buyers += 1)}` }),
  });
  const asked = [() => press('much'), () => press('little'), (): Asked => ({ method: 'GET', path: '/sales/much' })];
  let turn = 0;
  const load = startLoad(api.url, () => asked[(turn += 1) % asked.length]?.() ?? press('much'));
  const more = async (than: { kept: number; fresh: number }) => {
    await expect.poll(() => load.answered().kept - than.kept, SOON).toBeGreaterThan(200);
    await expect.poll(() => load.answered().fresh - than.fresh, SOON).toBeGreaterThan(50);
  };
  await more(load.answered());
  const before = pids();
  expect(before).toHaveLength(2);
  api.kill('SIGHUP');
  await expect.poll(() => count(REPLACED), SOON).toBe(1);
  await expectNew(before);
  await more(load.answered());
  const { answers, lost } = await load.stop();
  expect(lost).toEqual([]);
  expect(Object.keys(answers).sort()).toEqual(['200', '202 ok', '409 sold_out']);
});

test('a new one that ends before it listens: the old ones stay, and nobody starts another', async () => {
  const before = pids();
  await db.query(`insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())`);
  try {
    api.kill('SIGHUP');
    await expect.poll(() => count('a new API process does not listen: the old ones stay'), SOON).toBe(1);
  } finally {
    await db.query(`delete from schema_migrations where name = '9999_from_the_future'`);
  }
  expect(api.output()).toContain('it has 9999_from_the_future, which this version does not know');
  expect(pids()).toEqual(before);
  expect((await fetch(`${api.url}/livez`, { headers: { connection: 'close' } })).status).toBe(200);
  expect(count('an API process died')).toBe(0);
});

test('a connection that the first process hands over late, to one that is about to go, is served by another', async () => {
  const [replaced, stopping] = [count(REPLACED), count(STOPPING)];
  const before = pids();
  // Idle connections at both: for their sake one that is stopped goes on listening for a second.
  const idle = new Agent({ keepAliveTimeout: 60_000 });
  const keep = () => request(`${api.url}/livez`, { dispatcher: idle }).then(({ body }) => body.dump());
  await Promise.all(Array.from({ length: 10 }, keep));
  api.kill('SIGHUP');
  for (const nth of [1, 2]) {
    await expect.poll(() => count(STOPPING), { ...SOON, interval: 1 }).toBe(stopping + nth);
    // The first process does not learn what the old one says meanwhile: these come before that.
    api.kill('SIGSTOP');
    const ask = () =>
      fetch(`${api.url}/livez`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(20_000) });
    const answers = Array.from({ length: 20 }, ask);
    await sleep(2000);
    api.kill('SIGCONT');
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(20).fill(200));
  }
  await expect.poll(() => count(REPLACED), SOON).toBe(replaced + 1);
  await expectNew(before);
  await idle.destroy();
});

test('a closed terminal sends SIGHUP to all of them: only the first process acts on it', async () => {
  const [before, replaced, stopping] = [pids(), count(REPLACED), count(STOPPING)];
  for (const pid of before) process.kill(pid, 'SIGHUP');
  await sleep(500);
  expect(pids()).toEqual(before);
  expect(count(STOPPING)).toBe(stopping);
  expect(count('an API process died')).toBe(0);
  for (const pid of [...before, api.child.pid]) process.kill(Number(pid), 'SIGHUP');
  await expect.poll(() => count(REPLACED), SOON).toBe(replaced + 1);
  await expectNew(before);
});

test('SIGHUP again and again: one replacement follows the one that is under way, and as many serve as before', async () => {
  const [before, replaced, begun, listened] = [pids(), count(REPLACED), count(BEGINS), count(LISTENS)];
  api.kill('SIGHUP');
  await expect.poll(() => count(BEGINS), SOON).toBe(begun + 1);
  for (let n = 0; n < 3; n += 1) {
    api.kill('SIGHUP');
    await sleep(20); // the system may make one of two that come at once
  }
  await expect.poll(() => count(REPLACED), SOON).toBe(replaced + 2);
  await expectNew(before);
  expect(count(LISTENS)).toBe(listened + 4);
  api.kill('SIGTERM');
  const ended = await api.ended;
  expect(ended.code, ended.stdout).toBe(0);
  expect(ended.stdout).not.toContain('an API process died');
});

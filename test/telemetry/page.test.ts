/** One page for all API processes: what each has counted is added up, and of how late they are the worst is shown. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AggregatorRegistry, Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { registerMetrics } from '../../src/metrics.ts';
import { asAdmin, asShop, saleSettings, settings } from '../http/api.ts';
import { until } from '../ledger/house.ts';
import { childrenOf, said, start, type Program } from '../process/program.ts';
import { privateRedis } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

let stores: Stores;
let redis: Awaited<ReturnType<typeof privateRedis>>;
let program: Program;
let ports: { api: number; metrics: number };
beforeAll(async () => {
  [stores, redis] = await Promise.all([freshStores(), privateRedis()]);
  ports = { api: await freePort(), metrics: await freePort() };
  program = start(['serve'], {
    ...{ ...settings, ...stores.env, REDIS_URL: redis.url, API_PROCESSES: '2' },
    ...{ PORT: String(ports.api), METRICS_PORT: String(ports.metrics) },
    LATCH_MS: '60000', // once a process knows, it knows for the whole test
  });
  await said(program, /(all API processes listen)/);
});
afterAll(async () => {
  program.kill('SIGTERM');
  expect((await program.ended).code).toBe(0);
  await stores.drop();
});

const page = async () => (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text();
/** A series' value; 0 for one that is not there. */
const valueOf = (text: string, series: string) =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? 0,
  );
const SHOWN = {
  won: 'flashgate_answers_total{code="ok"}',
  soldOut: 'flashgate_answers_total{code="sold_out"}',
  latched: 'flashgate_latched_total',
  asked: 'flashgate_gate_call_buyers_sum',
  calls: 'flashgate_gate_call_buyers_count',
  allCalls: 'flashgate_gate_call_buyers_bucket{le="+Inf"}',
  single: 'flashgate_gate_call_buyers_bucket{le="1"}',
};
async function shown(): Promise<Record<keyof typeof SHOWN, number>> {
  const text = await page();
  const values = Object.entries(SHOWN).map(([name, series]) => [name, valueOf(text, series)]);
  return Object.fromEntries(values) as Record<keyof typeof SHOWN, number>;
}

/** Over a connection of its own: they go to the processes by turns. */
async function ask(path: string, method = 'GET', body?: object, headers: Record<string, string> = {}) {
  const reply = await fetch(`http://127.0.0.1:${ports.api}${path}`, {
    ...{ method, headers: { ...headers, connection: 'close', 'content-type': 'application/json' } },
    ...(body && { body: JSON.stringify(body) }),
  });
  await reply.arrayBuffer();
  return reply.status;
}
const newSale = async (saleId: string, total: number) =>
  expect(await ask(`/admin/sales/${saleId}`, 'PUT', saleSettings({ total }), asAdmin)).toBe(201);
let buyers = 0;
const press = (saleId: string) => ask(`/sales/${saleId}/reserve`, 'POST', { userId: `u-${(buyers += 1)}` }, asShop);

const NOT_FOUND = 'flashgate_answers_total{code="not_found"}';
const notFound = async () => valueOf(await page(), NOT_FOUND);

test('answers of two processes', async () => {
  const presses = 60;
  for (let n = 0; n < presses; n += 1) expect(await ask('/nowhere')).toBe(404);
  await until(async () => (await notFound()) === presses);
  const text = await page();
  expect(text).toMatch(/^# TYPE flashgate_gate_call_seconds histogram$/m);
  expect(text).not.toContain('flashgate_keeper_'); // a process shows its own part only
});

test('refusals that a process knew by itself, and buyers that the gate was asked for: of both, every press is one', async () => {
  await newSale('sold-out', 1);
  const before = await shown();
  expect(await press('sold-out')).toBe(202);
  const presses = 60;
  for (let n = 1; n < presses; n += 1) expect(await press('sold-out')).toBe(409);
  const after = await shown();
  const more = (name: keyof typeof SHOWN) => after[name] - before[name];
  expect([more('won'), more('soldOut')]).toEqual([1, presses - 1]);
  expect(more('latched') + more('asked')).toBe(presses);
  // Each process had to ask until it knew, and then never again; one page of one of them would lack its half.
  expect(more('latched')).toBeGreaterThan(presses / 2);
  expect(more('asked')).toBeGreaterThanOrEqual(3);
});

test('how many buyers one call of the gate decides, in both', async () => {
  await newSale('batched', 1000);
  const before = await shown();
  const presses = 40;
  redis.kill('SIGSTOP'); // the first at each process wait for it, and the others for the first
  const pressed = Promise.all(Array.from({ length: presses }, () => press('batched')));
  await sleep(1000);
  redis.kill('SIGCONT');
  expect(new Set(await pressed)).toEqual(new Set([202]));
  const after = await shown();
  const more = (name: keyof typeof SHOWN) => after[name] - before[name];
  expect(more('asked')).toBe(presses);
  expect(more('allCalls')).toBe(more('calls'));
  expect(more('calls')).toBeGreaterThanOrEqual(2);
  expect(more('calls')).toBeLessThan(presses / 2);
  expect(more('calls') - more('single')).toBeGreaterThanOrEqual(1);
});

const LAG = 'nodejs_eventloop_lag_p99_seconds';

test('the event loop’s lag is that of the process that is latest', async () => {
  const registry = new Registry();
  registerMetrics(registry);
  const lags = [0.01, 0.9, 0.02].map(async (lag) => {
    const metrics = await registry.getMetricsAsJSON();
    return metrics.map((metric) =>
      metric.name.startsWith('nodejs_eventloop_lag_') ? { ...metric, values: [{ value: lag, labels: {} }] } : metric,
    );
  });
  const text = await AggregatorRegistry.aggregate(await Promise.all(lags)).metrics();
  for (const of of ['', 'max_', 'mean_', 'stddev_', 'p50_', 'p90_', 'p99_']) {
    expect(valueOf(text, `nodejs_eventloop_lag_${of}seconds`), of).toBe(0.9);
  }
  expect(valueOf(text, 'nodejs_eventloop_lag_min_seconds')).toBe(0.01);
});

test('one process that stands still takes the page not with it: its counts stay, and it is shown to be late', async () => {
  const before = await notFound();
  const stuck = Number(childrenOf(program)[0]);
  process.kill(stuck, 'SIGSTOP');
  const text = await page().finally(() => process.kill(stuck, 'SIGCONT'));
  expect(valueOf(text, LAG)).toBeGreaterThanOrEqual(2);
  expect(valueOf(text, NOT_FOUND)).toBe(before);
});

test('a count does not fall when a process ends: not in a replacement, not when one is killed', async () => {
  const before = await notFound();
  const told = (message: string) => program.output().split(message).length - 1;
  for (let n = 0; n < 10; n += 1) expect(await ask('/nowhere')).toBe(404); // seen on no page before they are replaced
  program.kill('SIGHUP');
  await said(program, /(all API processes are replaced)/);
  expect(await notFound()).toBe(before + 10);
  const listening = told('"msg":"the API listens"');
  for (const pid of childrenOf(program)) process.kill(pid, 'SIGKILL');
  await until(() => told('"msg":"the API listens"') === listening + 2, 40_000);
  expect(await ask('/nowhere')).toBe(404);
  await until(async () => (await notFound()) === before + 11);
});

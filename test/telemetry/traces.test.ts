/** One press is one trace, from the API through the queue into the ledger; what costs nothing when it is off. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { wantsTraces } from '../../src/tracing.ts';
import { start, type Program } from '../flow/processes.ts';
import { saleSettings, settings } from '../http/api.ts';
import { until } from '../ledger/house.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { startCollector, type ReceivedSpan } from './collector.ts';

let stores: Stores;
let collector: Awaited<ReturnType<typeof startCollector>>;
let env: Record<string, string>;
let own: string;
const programs: Program[] = [];
const PATIENCE_MS = 40_000;

beforeAll(async () => {
  [stores, collector] = await Promise.all([freshStores(), startCollector()]);
  env = {
    ...{ ...settings, ...stores.env, METRICS_PORT: String(await freePort()), LATCH_MS: '60000' },
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50' },
  };
  const serve = start('serve', env);
  programs.push(serve);
  own = String((await serve.says('the API listens'))['address']);
});
afterAll(async () => {
  await Promise.all(programs.map(({ end }) => end('SIGTERM')));
  collector.close();
  await stores.drop();
});

const asAdmin = { authorization: `Bearer ${settings.ADMIN_TOKEN}`, 'content-type': 'application/json' };
const asShop = { authorization: `Bearer ${settings.SERVICE_TOKEN}`, 'content-type': 'application/json' };

async function newSale(saleId: string, total: number): Promise<string> {
  const body = JSON.stringify(saleSettings({ total }));
  const reply = await fetch(`${own}/admin/sales/${saleId}`, { method: 'PUT', headers: asAdmin, body });
  expect(reply.status).toBe(201);
  return saleId;
}

/** Presses with a trace of the caller's own. */
async function press(saleId: string, userId: string) {
  const traceId = randomBytes(16).toString('hex');
  const caller = randomBytes(8).toString('hex');
  const headers = { ...asShop, traceparent: `00-${traceId}-${caller}-01`, tracestate: 'shop=1' };
  const reply = await fetch(`${own}/sales/${saleId}/reserve`, {
    ...{ method: 'POST', headers },
    body: JSON.stringify({ userId }),
  });
  await reply.arrayBuffer();
  return { status: reply.status, traceId, caller };
}

/** Waits for the spans of these names in that trace. @returns them by name */
async function traced(traceId: string, ...names: string[]): Promise<Record<string, ReceivedSpan>> {
  const found = () => collector.spans.filter((span) => span.traceId === traceId);
  await until(() => names.every((name) => found().some((span) => span.name === name)), PATIENCE_MS);
  return Object.fromEntries(found().map((span) => [span.name, span]));
}

test('messages that come together are one transaction, linked with each press', { timeout: 90_000 }, async () => {
  const saleId = await newSale('together', 10);
  const pressed = await Promise.all(Array.from({ length: 5 }, (_, n) => press(saleId, `buyer-${n}`)));
  expect(pressed.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202]);
  programs.push(start('work', { ...env, METRICS_PORT: '' }));
  const holds = await Promise.all(
    pressed.map(async ({ traceId }) => (await traced(traceId, 'process hold'))['process hold']),
  );
  await until(() => collector.named('record orders').length > 0, PATIENCE_MS);
  for (const hold of holds) {
    const batch = collector.spans.find(({ spanId }) => spanId === hold?.links[0]?.spanId);
    expect(batch).toMatchObject({ name: 'record orders', parent: '' });
    expect(batch?.links).toContainEqual({ traceId: hold?.traceId, spanId: hold?.spanId });
  }
  const [batch] = collector.named('record orders');
  expect(batch?.links.length).toBeGreaterThan(1);
  expect(pressed.map(({ traceId }) => traceId)).not.toContain(batch?.traceId);
});

test('one press is one trace: API, queue, worker, ledger, under the caller’s', { timeout: 90_000 }, async () => {
  const saleId = await newSale('alone', 10);
  const { traceId, caller, status } = await press(saleId, 'buyer');
  expect(status).toBe(202);
  const names = ['reserve', 'gate reserve', 'enqueue', 'process hold', 'record orders', 'ledger record'];
  const spans = await traced(traceId, ...names);
  const parents = Object.fromEntries(
    names.map((name) => {
      const above = collector.spans.find(({ spanId }) => spanId === spans[name]?.parent);
      return [name, above?.name ?? spans[name]?.parent];
    }),
  );
  expect(parents).toEqual({
    ...{ reserve: caller, 'gate reserve': 'reserve', enqueue: 'reserve' },
    ...{ 'process hold': 'enqueue', 'record orders': 'process hold', 'ledger record': 'record orders' },
  });
  expect(spans['reserve']).toMatchObject({
    service: 'flashgate-serve',
    attributes: {
      'http.route': '/sales/:saleId/reserve',
      'http.response.status_code': 202,
      'flashgate.sale_id': saleId,
    },
  });
  expect(spans['process hold']?.service).toBe('flashgate-work');
  expect(spans['process hold']?.attributes['flashgate.reservation_id']).toBe(
    spans['gate reserve']?.attributes['flashgate.reservation_id'],
  );
});

test('a refusal that the process knows by itself makes no span', { timeout: 60_000 }, async () => {
  const saleId = await newSale('sold-out', 1);
  const presses = 40;
  const traces = new Set<string>();
  for (let n = 0; n < presses; n += 1) traces.add((await press(saleId, `crowd-${n}`)).traceId);
  const page = await (await fetch(`http://127.0.0.1:${env['METRICS_PORT']}/metrics`)).text();
  const latched = Number(/^flashgate_latched_total (\d+)$/m.exec(page)?.[1]);
  expect(latched).toBeGreaterThan(0);
  const asked = () => collector.named('reserve').filter(({ traceId }) => traces.has(traceId)).length;
  await until(() => asked() >= presses - latched, PATIENCE_MS);
  const last = await press(await newSale('after', 1), 'buyer'); // spans are exported in order
  await traced(last.traceId, 'reserve');
  expect(asked()).toBe(presses - latched);
});

/** Which packages of OpenTelemetry a process has loaded that was started with this environment. */
function loadedWith(more: Record<string, string>): string[] {
  const root = join(import.meta.dirname, '../..');
  const code = `
    import { createRequire } from 'node:module';
    import { startTracing } from '${root}/src/tracing.ts';
    await import('${root}/src/commands/run.ts');
    const quiet = () => undefined;
    const { stop } = await startTracing(process.env, 'x', { info: quiet, warn: quiet });
    const paths = Object.keys(createRequire('${root}/package.json').cache).join();
    console.log(JSON.stringify([...new Set(paths.match(/@opentelemetry\\/[\\w-]+/g))]));
    await stop();`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    ...{ encoding: 'utf8', env: { PATH: process.env['PATH'], ...more } },
  });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as string[];
}

test('without an exporter nothing but the interface is loaded', () => {
  expect(loadedWith({})).toEqual(['@opentelemetry/api']);
  expect(loadedWith({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' })).toContain('@opentelemetry/sdk-trace-node');
});

test('only what the standard variables ask for, and a reason for what is not built in', () => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:4318';
  expect(wantsTraces({})).toBe(false);
  expect(wantsTraces({ OTEL_EXPORTER_OTLP_ENDPOINT })).toBe(true);
  expect(wantsTraces({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: OTEL_EXPORTER_OTLP_ENDPOINT })).toBe(true);
  expect(wantsTraces({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: 'true' })).toBe(false);
  expect(wantsTraces({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: 'none' })).toBe(false);
  expect(() => wantsTraces({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' })).toThrow(/only otlp/);
  expect(() => wantsTraces({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toThrow(/4318/);
});

/** The client against the API itself: its types are those of the document, its answers those that are typed. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clientTypes, TYPES } from '../../scripts/lib/client-types.js';
import { flashgate, ProblemError, told, type Flashgate } from '../../src/client/client.ts';
import { docAt, ROOT } from '../docs/documents.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { stripeSettings } from '../support/stripe.ts';
import { ADMIN, newId, record, saleSettings, SERVICE, testApi, type TestApi } from './api.ts';

let stores: Stores;
let api: TestApi;
let shop: Flashgate;
let keeper: Flashgate;
beforeAll(async () => {
  stores = await freshStores();
  // Nobody asks it for a page.
  api = await testApi({ ...stores.env, ...stripeSettings('http://127.0.0.1:9') });
  const baseUrl = await api.url();
  shop = flashgate({ baseUrl, token: SERVICE });
  keeper = flashgate({ baseUrl, token: ADMIN });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const putSale = async (total: number) => {
  const path = { saleId: newId() };
  await told(keeper.PUT('/admin/sales/{saleId}', { params: { path }, body: saleSettings({ total }) }));
  return path;
};

test('its types are what the document says; if not: node_modules/node/bin/node scripts/dump-client.js', async () => {
  expect(readFileSync(TYPES, 'utf8')).toBe(await clientTypes(api.conformity.document));
});

test('a buyer’s way: won, dup, looked at, given up, sold out', async () => {
  const path = await putSale(1);
  const press = (userId: string) => shop.POST('/sales/{saleId}/reserve', { params: { path }, body: { userId } });
  const won = await told(press('ann'));
  expect(won).toMatchObject({ outcome: 'ok', userId: 'ann', qty: 1, amount: 49_900 });
  expect(await told(press('ann'))).toMatchObject({ outcome: 'dup', reservationId: won.reservationId });
  const { data, error } = await press('bob');
  expect(data).toBeUndefined();
  expect([error?.code, error?.mayReturn]).toEqual(['sold_out', true]);

  const its = { params: { path: { ...path, reservationId: won.reservationId }, query: { userId: 'ann' } } };
  const reservation = '/sales/{saleId}/reservations/{reservationId}';
  expect((await told(shop.GET(reservation, its))).status).toBe('QUEUED');
  const { saleId, userId, qty, amount, currency, reservationId, reservedAt, expiresAt, outcome } = won;
  await record(api, { saleId, userId, qty, amount, currency, reservationId, reservedAt, expiresAt, outcome });
  await told(shop.DELETE(reservation, its));
  expect(await told(shop.GET(reservation, its))).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer' });
});

test('an admin’s way: figures, orders page by page, refusals as errors', async () => {
  const path = await putSale(5);
  expect((await told(keeper.GET('/admin/sales'))).sales.map(({ saleId }) => saleId)).toContain(path.saleId);
  expect((await told(keeper.GET('/admin/sales/{saleId}', { params: { path } }))).gate?.stock).toBe(5);
  const params = { path, query: { status: 'PAID' as const } };
  expect(await told(keeper.GET('/admin/sales/{saleId}/orders', { params }))).toEqual({ orders: [], next: null });
  expect((await told(keeper.POST('/admin/sales/{saleId}/pause', { params: { path } }))).state).toBe('paused');
  const closing = told(keeper.POST('/admin/sales/{saleId}/close', { params: { path } }));
  await expect(closing).rejects.toMatchObject({ code: 'not_settled', status: 409 });
  await expect(told(shop.GET('/admin/sales'))).rejects.toBeInstanceOf(ProblemError); // the wrong token
});

test('the example of docs/client.md runs, and says what the document shows', { timeout: 60_000 }, async () => {
  const { saleId } = await putSale(1);
  const { blocks } = docAt('docs/client.md');
  const example = blocks.find(({ language }) => language === 'ts')?.lines.join('\n') ?? '';
  const shown = blocks.find(({ language }) => language === 'text')?.lines.join('\n') ?? '';
  const folder = mkdtempSync(join(ROOT, '.flashgate/example-'));
  try {
    const file = join(folder, 'buy.ts');
    writeFileSync(file, example.replace('./flashgate/client.ts', join(ROOT, 'src/client/client.ts')));
    const env = { ...process.env, FLASHGATE_URL: await api.url(), SERVICE_TOKEN: SERVICE };
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, [file, saleId, 'ann', 'ann', 'bob'], { env });
    const form = (text: string) => text.trim().replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
    expect(form(stdout)).toBe(form(shown));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

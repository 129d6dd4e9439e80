/** The rest of the shop: what it asks for, how often, and that nothing that went wrong is lost or flatters. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Felt, Watching } from '../../bench/lib/bystander.ts';
import { ask, endChild, startChild } from '../../bench/lib/child.ts';
import { freshStores, type Stores } from '../support/stores.ts';

const SLOW_MS = 60;
let stores: Stores;
let pool: pg.Pool;
let server: Server;
let port: number;
let child: ChildProcess;
const asked: string[] = [];
let answer: (path: string) => number;
beforeAll(async () => {
  stores = await freshStores();
  pool = new pg.Pool({ connectionString: stores.databaseUrl, max: 1 });
  await pool.query('create table products (product_id integer primary key, name text, price bigint)');
  server = createServer(({ url = '' }, response) => {
    const opening = url === '/livez?open';
    if (!opening) asked.push(url);
    const status = opening ? 200 : answer(url);
    setTimeout(() => response.writeHead(status).end('out of order'), url.startsWith('/livez') ? 0 : SLOW_MS);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  ({ child } = await startChild(join(import.meta.dirname, '../../bench/lib/bystander.ts'), {
    env: { DATABASE_URL: stores.databaseUrl },
  }));
});
afterAll(async () => {
  await endChild(child);
  server.close();
  await pool.end();
  await stores.drop();
});
beforeEach(() => {
  asked.length = 0;
  answer = () => 200;
});

/** What is felt beside some work. */
async function beside(work: () => Promise<unknown>, catalogue = true): Promise<Felt> {
  await ask(child, { start: { port, catalogue } } satisfies Watching);
  await work();
  return (await ask(child, { stop: true } satisfies Watching)) as Felt;
}

test('all three are asked at one rate, and all that was asked is counted, also what was under way at the end', async () => {
  const { query, livez, catalogue } = await beside(() => sleep(400));
  expect(query.count).toBeGreaterThan(20);
  expect([livez.count, catalogue?.count]).toEqual([query.count, query.count]);
  expect(asked.filter((path) => path === '/livez')).toHaveLength(livez.count);
  expect(asked.filter((path) => /^\/catalogue\/[1-9]\d*$/.test(path))).toHaveLength(livez.count);
  expect([query.failed, livez.failed, catalogue?.failed]).toEqual([0, 0, 0]);
  expect([query.reason, livez.reason, catalogue?.reason]).toEqual([undefined, undefined, undefined]);
  // The wait for a slow answer is in the latency; the slow ones do not hold up the quick ones.
  expect(catalogue?.p50).toBeGreaterThanOrEqual(SLOW_MS - 1);
  expect(livez.p50).toBeLessThan(catalogue?.p50 ?? 0);
});

test('a server without a catalogue is not asked for one, and nothing is said of it', async () => {
  const felt = await beside(() => sleep(100), false);
  expect(Object.keys(felt).sort()).toEqual(['livez', 'query']);
  expect(asked.every((path) => path === '/livez')).toBe(true);
});

test('what failed is counted, with the first reason, and as long as the shop would have waited', async () => {
  let [health, pages] = [0, 0];
  answer = (path) => {
    if (path === '/livez') return (health += 1) % 2 === 0 ? 200 : 503;
    return (pages += 1) === 1 ? 500 : 404;
  };
  const felt = await beside(async () => {
    await sleep(100);
    await pool.query('alter table products rename to gone');
    await sleep(100);
    await pool.query('alter table gone rename to products');
  });
  expect(felt.query.reason).toContain('"products" does not exist');
  expect(felt.query.failed).toBeGreaterThan(0);
  expect(felt.query.failed).toBeLessThan(felt.query.count);
  expect(felt.livez.failed).toBe(Math.ceil(felt.livez.count / 2)); // every other one, from the first on
  expect(felt.livez.reason).toBe('GET /livez answered 503: out of order');
  expect(felt.livez.p99).toBe(5000);
  expect(felt.catalogue).toMatchObject({ failed: felt.livez.count, p50: 5000, p99: 5000 });
  expect(felt.catalogue?.reason).toMatch(/^GET \/catalogue\/\d+ answered 500: out of order$/);
});

test('a second look knows nothing of the first', async () => {
  const felt = await beside(() => sleep(50));
  expect([felt.query.failed, felt.livez.failed, felt.catalogue?.failed]).toEqual([0, 0, 0]);
});

test('a query that waits is felt: a lock on its table for a while', async () => {
  const { query, livez } = await beside(async () => {
    const client = await pool.connect();
    await client.query('begin');
    await client.query('lock table products in access exclusive mode');
    await sleep(300);
    await client.query('commit');
    client.release();
  });
  expect(query.p99).toBeGreaterThan(200);
  expect([query.failed, livez.failed]).toEqual([0, 0]);
});

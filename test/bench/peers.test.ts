/** The plain designs are sound: none oversells, each buyer has one order, a buyer who holds is told so; and the shop beside. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endChild, startChild } from '../../bench/lib/child.ts';
import { databaseAt, freshStores, type Stores } from '../support/stores.ts';

const PEERS = join(import.meta.dirname, '../../bench/peers');
let stores: Stores;
let pool: pg.Pool;
let redis: Redis;
let url: string;
beforeAll(async () => {
  stores = await freshStores();
  const name = `peers_${Date.now()}`;
  const admin = new pg.Client({ connectionString: stores.databaseUrl });
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.end();
  url = databaseAt(stores.databaseUrl, name);
  pool = new pg.Pool({ connectionString: url, max: 2 });
  await pool.query(readFileSync(join(PEERS, 'schema.sql'), 'utf8'));
  redis = new Redis(stores.redisUrl);
});
afterAll(async () => {
  await pool.end();
  redis.disconnect();
  const admin = new pg.Client({ connectionString: stores.databaseUrl });
  await admin.connect();
  await admin.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`);
  await admin.end();
  await stores.drop();
});

const UNITS = 5;

async function put(saleId: string): Promise<void> {
  await pool.query('insert into stock (sale_id, total, amount) values ($1, $2, 100)', [saleId, UNITS]);
  await redis.set(`{peer:${saleId}}:stock`, UNITS);
}

async function sold(saleId: string, where: 'postgres' | 'redis'): Promise<number> {
  if (where === 'redis') return redis.hlen(`{peer:${saleId}}:holds`);
  const { rows } = await pool.query<{ sold: number; orders: number; journal: number }>(
    `select sold, (select count(*)::int from orders where sale_id = $1) as orders,
       (select sum(delta)::int from journal where sale_id = $1) as journal from stock where sale_id = $1`,
    [saleId],
  );
  const [row] = rows;
  expect([row?.orders, row?.journal]).toEqual([row?.sold, row?.sold]);
  return row?.sold ?? 0;
}

const SELLING = [
  ['redis.ts', 'redis'],
  ['sql-update.ts', 'postgres'],
  ['sql-for-update.ts', 'postgres'],
  ['sql-memory.ts', 'postgres'],
  ['sql-queue.ts', 'postgres'],
] as const;

test.each(SELLING)(
  '%s: the catalogue of a shop stands beside the sale where they share a pool',
  async (file, where) => {
    const { child, first } = await startChild(join(PEERS, file), {
      env: { DATABASE_URL: url, REDIS_URL: stores.redisUrl },
    });
    try {
      const { port, catalogue } = first as { port: number; catalogue: boolean };
      expect(catalogue).toBe(where === 'postgres');
      const reply = await fetch(`http://127.0.0.1:${port}/catalogue/7`);
      if (catalogue) expect(await reply.json()).toEqual({ name: 'product 7', price: '700' });
      else expect(reply.status).toBe(404);
      expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
    } finally {
      await endChild(child);
    }
  },
);

test.each(SELLING)('%s sells what there is, once each', async (file, where) => {
  const saleId = `sale-${file.replace('.ts', '')}`;
  await put(saleId);
  const { child, first } = await startChild(join(PEERS, file), {
    env: { DATABASE_URL: url, REDIS_URL: stores.redisUrl },
  });
  try {
    const { port } = first as { port: number };
    const press = async (userId: string) => {
      const reply = await fetch(`http://127.0.0.1:${port}/sales/${saleId}/reserve`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ userId }),
      });
      return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
    };
    const early = await Promise.all(Array.from({ length: 6 }, () => press('the-same')));
    expect(early.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 202]);
    expect(new Set(early.map(({ body }) => body['reservationId'])).size).toBe(1);
    const crowd = await Promise.all(Array.from({ length: 60 }, (_, n) => press(`u-${n}`)));
    expect(crowd.filter(({ status }) => status === 202)).toHaveLength(UNITS - 1);
    const refused = crowd.filter(({ status }) => status !== 202);
    expect(new Set(refused.map(({ status, body }) => `${status} ${String(body['code'])}`))).toEqual(
      new Set(['409 sold_out']),
    );
    expect(await sold(saleId, where)).toBe(UNITS);
    expect((await press('not valid\u0000')).status).toBe(400);
  } finally {
    await endChild(child);
  }
});

test('the bare routes tell everybody the same, written once, gathered, or made each time', async () => {
  const answers = [];
  for (const file of ['bare.ts', 'bare-gathered.ts', 'bare-serialised.ts']) {
    const { child, first } = await startChild(join(PEERS, file));
    try {
      const reply = await fetch(`http://127.0.0.1:${(first as { port: number }).port}/sales/any/reserve`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ userId: 'somebody' }),
      });
      const type = reply.headers.get('content-type')?.split(';')[0];
      answers.push([reply.status, type, reply.headers.get('retry-after'), await reply.text()]);
    } finally {
      await endChild(child);
    }
  }
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  expect(answers[0]).toEqual([409, 'application/problem+json', '600', expect.stringContaining('"mayReturn":true')]);
});

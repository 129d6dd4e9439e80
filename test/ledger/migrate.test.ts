/** Migrations: safe when many start at once, repeatable, and refused on a database that is not this version's. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { dumpSchema } from '../../scripts/lib/schema.js';
import { checkSchema, migrate, SchemaMismatch } from '../../src/ledger/migrate.ts';
import { databaseAt } from '../support/stores.ts';

/** Every migration there is, in order. */
const ALL = readdirSync(join(import.meta.dirname, '../../migrations'))
  .map((file) => file.replace(/\.sql$/, ''))
  .sort();

let admin: pg.Client;
let url: string;
let db: pg.Client;

beforeAll(async () => {
  admin = new pg.Client({ connectionString: inject('services').env['DATABASE_URL'] });
  await admin.connect();
});
afterAll(() => admin.end());

/** Each test has a database with nothing in it. */
beforeEach(async () => {
  const name = `flashgate_migrate_${randomBytes(6).toString('hex')}`;
  await admin.query(`create database ${name}`);
  url = databaseAt(inject('services').env['DATABASE_URL'] ?? '', name);
  db = new pg.Client({ connectionString: url });
  await db.connect();
});
afterEach(async () => {
  await db.end();
  await admin.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`);
});

const records = async () => (await db.query<{ name: string }>('select name from schema_migrations order by id')).rows;

test('twenty at once: one applies, all succeed', async () => {
  const applied = await Promise.all(Array.from({ length: 20 }, () => migrate(url)));
  expect(applied.filter((names) => names.length > 0)).toEqual([ALL]);
  expect(await records()).toEqual(ALL.map((name) => ({ name })));
  await checkSchema(db);
});

test('again: nothing is applied, nothing is changed', async () => {
  await migrate(url);
  await db.query(`update shard_fences set token = 7 where shard = 3`);
  const before = await dumpSchema(db);
  expect(await migrate(url)).toEqual([]);
  expect(await dumpSchema(db)).toBe(before);
  expect((await db.query('select count(*)::int as shards, sum(token)::int as tokens from shard_fences')).rows).toEqual([
    { shards: 256, tokens: 7 },
  ]);
});

test('a newer database is refused by name, and left as it is', async () => {
  await migrate(url);
  await db.query(`insert into schema_migrations (name, run_on) values ('0099_from_the_future', now())`);
  for (const refused of [() => migrate(url), () => checkSchema(db)]) {
    await expect(refused()).rejects.toBeInstanceOf(SchemaMismatch);
    await expect(refused()).rejects.toThrow(/0099_from_the_future.*run a newer flashgate/);
  }
  expect(await records()).toHaveLength(ALL.length + 1);
});

test('an older database is refused by name, with the command that helps', async () => {
  await expect(checkSchema(db)).rejects.toThrow(`lacks ${ALL.join(', ')}: run flashgate migrate`);
  await migrate(url);
  await db.query('delete from schema_migrations');
  await expect(checkSchema(db)).rejects.toThrow(`lacks ${ALL.join(', ')}: run flashgate migrate`);
});

test('a migration that fails leaves neither half of itself nor its record', async () => {
  await db.query('create table refunds (mine int)'); // in its way, late in the file
  await expect(migrate(url)).rejects.toThrow('already exists');
  const { rows } = await db.query(
    `select to_regclass('sales')::text as sales, to_regclass('refunds')::text as refunds`,
  );
  expect(rows).toEqual([{ sales: null, refunds: 'refunds' }]);
  await db.query('drop table refunds');
  expect(await migrate(url)).toEqual(ALL);
});

test('a migrator that is killed lets the next one go on', async () => {
  // Hold up the first one in its middle: it wants a lock that we have.
  await db.query('begin; create table refunds (mine int)');
  const first = migrate(url).catch((error: unknown) => error);
  let pid: number | undefined;
  while (pid === undefined) {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`,
      [new URL(url).pathname.slice(1)],
    );
    pid = rows[0]?.pid;
  }
  const second = migrate(url);
  await admin.query('select pg_terminate_backend($1)', [pid]);
  expect(await first).toBeInstanceOf(Error);
  await db.query('rollback');
  expect(await second).toEqual(ALL);
});

test('schema.sql is what the migrations make (else: node_modules/node/bin/node scripts/dump-schema.js)', async () => {
  await migrate(url);
  expect(await dumpSchema(db)).toBe(readFileSync(join(import.meta.dirname, '../../schema.sql'), 'utf8'));
});

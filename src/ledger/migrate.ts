/** The schema: brought up to date by `flashgate migrate`, and checked by everything else before it starts. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import type { Queryable } from './db.ts';

const FOLDER = join(import.meta.dirname, '../../migrations');
const TABLE = 'schema_migrations';

/**
 * Applies the migrations that the database lacks, each with its record, all in one transaction. Safe when many
 * processes start it at once: they wait for each other on an advisory lock.
 * @returns the names of those that were applied
 * @throws {Error} when the database has a migration that this version does not know
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  // The statement under way tells of a lost connection; unheard, it would end the process with a stack trace.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { newer } = await compare(client);
    if (newer.length > 0) throw new SchemaMismatch(newer, []);
    const applied = await runner({
      dbClient: client,
      dir: FOLDER,
      direction: 'up',
      migrationsTable: TABLE,
      advisoryLockMode: 'wait',
      checkOrder: true,
      log: () => undefined,
    });
    return applied.map(({ name }) => name);
  } finally {
    await client.end();
  }
}

/** The database's schema is not this version's. */
export class SchemaMismatch extends Error {
  constructor(newer: string[], missing: string[]) {
    const words = [
      ...(missing.length > 0 ? [`it lacks ${missing.join(', ')}: run flashgate migrate`] : []),
      ...(newer.length > 0
        ? [`it has ${newer.join(', ')}, which this version does not know: run a newer flashgate`]
        : []),
    ];
    super(`the database's schema is not this version's: ${words.join('; ')}`);
  }
}

/** @throws {SchemaMismatch} that names what the database lacks, or has more than this version knows */
export async function checkSchema(db: Queryable): Promise<void> {
  const { newer, missing } = await compare(db);
  if (newer.length > 0 || missing.length > 0) throw new SchemaMismatch(newer, missing);
}

async function compare(db: Queryable) {
  const known = readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
  if (known.length === 0) throw new Error(`${FOLDER} has no migrations`);
  const { rows: tables } = await db.query<{ table: string | null }>(`select to_regclass($1)::text as table`, [TABLE]);
  const applied = tables[0]?.table
    ? (await db.query<{ name: string }>(`select name from ${TABLE} order by id`)).rows.map(({ name }) => name)
    : [];
  return {
    newer: applied.filter((name) => !known.includes(name)),
    missing: known.filter((name) => !applied.includes(name)),
  };
}

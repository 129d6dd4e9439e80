// Writes schema.sql anew: what the migrations make of an empty database. For whoever reads the schema, or reviews a
// change of it; nothing runs it. A test compares it with the migrations.
// Usage, after `npm test` or another command that does the set-up: node_modules/node/bin/node scripts/dump-schema.js
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '../src/ledger/migrate.ts';
import { ROOT } from './lib/folders.js';
import { dumpSchema } from './lib/schema.js';
import { startPostgres } from './servers/index.js';

const folder = mkdtempSync(join(tmpdir(), 'flashgate-schema-'));
const server = await startPostgres({ folder, fast: true });
try {
  await migrate(server.url);
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  writeFileSync(join(ROOT, 'schema.sql'), await dumpSchema(client).finally(() => client.end()));
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

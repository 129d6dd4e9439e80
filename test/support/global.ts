/** Before all tests: the servers, and a migrated database that each test file gets a copy of. After all: none of it. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { startServices } from '../../scripts/services.js';
import { migrate } from '../../src/ledger/migrate.ts';
import { databaseAt } from './stores.ts';

declare module 'vitest' {
  interface ProvidedContext {
    services: { env: Record<string, string>; folder: string; template: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startServices({ name: 'test', fast: true });
  const adminUrl = services.env['DATABASE_URL'] ?? '';
  const template = `flashgate_template_${randomBytes(4).toString('hex')}`;
  const admin = async (sql: string) => {
    const client = new pg.Client({ connectionString: adminUrl });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  try {
    await admin(`create database ${template}`);
    await migrate(databaseAt(adminUrl, template));
  } catch (error) {
    await services.stop();
    throw error;
  }
  project.provide('services', { env: services.env, folder: services.folder, template });
  return async () => {
    await admin(`drop database ${template}`);
    await services.stop();
  };
}

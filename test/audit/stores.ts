/** Stores that a test of the audit fills, breaks and fills again. */
import { Redis } from 'ioredis';
import pg from 'pg';
import { type AuditOptions, type AuditReport, runAudit } from '../../src/audit/audit.ts';
import { freshStores } from '../support/stores.ts';
import type { Mutation } from './mutation.ts';
import { writeGate, writeLedger, writeOrder } from './sound.ts';

export type AuditStores = {
  db: pg.Client;
  redis: Redis;
  databaseUrl: string;
  redisUrl: string;
  /** Empties both stores and fills them with sound sales. */
  refill(): Promise<void>;
  /** With more patience for holds without orders than the tests take. `log` hears of each look that settles nothing. */
  audit(options?: Partial<AuditOptions>, log?: (line: string) => void): Promise<AuditReport>;
  drop(): Promise<void>;
};

/** Empty stores with the whole schema. */
export async function auditStores(): Promise<AuditStores> {
  const stores = await freshStores();
  const { databaseUrl, redisUrl } = stores;
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  const redis = new Redis(redisUrl);
  return {
    db,
    redis,
    databaseUrl,
    redisUrl,
    refill: async () => {
      await db.query(`set session_replication_role = replica;
        truncate sales, sale_stock, sale_orders, ledger_entries, payments, payment_events, refunds, checkout_pages, webhook_endpoints, webhook_secrets, webhook_deliveries restart identity cascade;
        reset session_replication_role`);
      await redis.flushdb();
      await writeLedger(db);
      await writeGate(redis);
    },
    audit: (options = {}, log = () => undefined) =>
      runAudit({ databaseUrl, redisUrl, graceMs: 600_000, ...options }, log),
    drop: async () => {
      await db.end();
      redis.disconnect();
      await stores.drop();
    },
  };
}

/**
 * Takes away every constraint, index and trigger that could refuse a mutation, so that it is the audit alone that
 * notices.
 */
export async function dropGuards(db: pg.Client): Promise<void> {
  await db.query(`do $$
    declare guard record;
    begin
      for guard in select conrelid::regclass as rel, conname as name from pg_constraint
                    where connamespace = 'public'::regnamespace and contype in ('c', 'f', 'p', 'u')
                      and conrelid <> 0 order by contype = 'f' desc loop
        execute format('alter table %s drop constraint %I', guard.rel, guard.name);
      end loop;
      for guard in select tgrelid::regclass as rel, tgname as name from pg_trigger where not tgisinternal loop
        execute format('drop trigger %I on %s', guard.name, guard.rel);
      end loop;
      for guard in select indexrelid::regclass as name from pg_index join pg_class c on c.oid = indrelid
                    where indisunique and c.relnamespace = 'public'::regnamespace loop
        execute format('drop index %s', guard.name);
      end loop;
    end $$`);
}

export async function apply({ db, redis }: AuditStores, mutation: Mutation): Promise<void> {
  for (const order of mutation.orders ?? []) await writeOrder(db, order);
  if (mutation.sql !== undefined) await db.query(mutation.sql);
  if (mutation.redis === undefined) return;
  const multi = redis.multi();
  for (const [command = '', ...args] of mutation.redis) multi.call(String(command), ...args);
  for (const [error] of (await multi.exec()) ?? []) if (error) throw error;
}

/** The names of the checks that do not hold. */
export function redChecks(report: AuditReport): string[] {
  return [...new Set(report.checks.filter(({ broken }) => broken > 0).map(({ name }) => name))].sort();
}

/** What a check named, over all sales. */
export function namedBy(report: AuditReport, check: string): string[] {
  return report.checks
    .filter(({ name }) => name === check)
    .flatMap(({ examples }) => examples.map(({ subject }) => subject));
}

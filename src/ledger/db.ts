/** The connection to Postgres: pool, time limits, transactions, and which errors mean what. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { storeFailures } from '../meter.ts';

/** Postgres is away, full, shutting down, or did not answer in time. Nothing is known of what was asked. */
export class LedgerUnavailable extends Error {}

export type DbOptions = {
  connectionString: string;
  max: number;
  connectTimeoutMs: number;
  lockTimeoutMs: number;
  statementTimeoutMs: number;
  idleInTransactionTimeoutMs: number;
  onIdleError: (error: Error) => void;
};

export type Pool = pg.Pool;
/** A pool, or a client inside a transaction. */
export type Queryable = Pick<pg.ClientBase, 'query'>;

/** A statement with a name is prepared once per connection. */
export type Statement = { name: string; text: string };

/** Postgres' bigint as a number: exact, or refused. */
export function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is beyond what a number holds exactly`);
  return value;
}

/** Postgres' types as the driver reads them, but bigint. */
const ownTypes = new pg.TypeOverrides();
ownTypes.setTypeParser(pg.types.builtins.INT8, parseInt8);

export function createPool(options: DbOptions): Pool {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.max,
    connectionTimeoutMillis: options.connectTimeoutMs,
    lock_timeout: options.lockTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // The server's own limit comes first; this one is for a server that no longer answers at all.
    query_timeout: options.statementTimeoutMs + 1000,
    idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs,
    keepAlive: true,
    application_name: 'flashgate',
    types: ownTypes,
  });
  pool.on('error', options.onIdleError);
  // A server that dies may say so in the very packet that says that a new connection is ready, before whoever asked for
  // it can listen; and a connection can be lost between two statements. Unheard, either would end the process; the next
  // statement on that connection tells of it anyway.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Runs a statement; rows typed by the caller. */
export async function query<Row extends pg.QueryResultRow>(
  db: Queryable,
  statement: Statement,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await db.query<Row>({ ...statement, values }).catch(tell)).rows;
}

/** Serialization failure and deadlock: the transaction did nothing and may be tried again. */
const TRANSIENT = new Set(['40001', '40P01']);
const ATTEMPTS = 5;

/**
 * Runs `work` in one transaction (READ COMMITTED), again after a serialization failure or a deadlock, at most five
 * times, with jitter. `work` must therefore do nothing outside the database.
 * @throws {LedgerUnavailable} when Postgres is away or too slow; whatever `work` throws otherwise
 */
export async function transaction<T>(pool: Pool, work: (client: Queryable) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await once(pool, work);
    } catch (error) {
      if (attempt === ATTEMPTS || !TRANSIENT.has(sqlState(error) ?? '')) throw error;
      await sleep(Math.random() * 20 * attempt);
    }
  }
}

const READ_ONLY = '25006';

async function once<T>(pool: Pool, work: (client: Queryable) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch(tell);
  let usable = true;
  try {
    await client.query('begin').catch(tell);
    const result = await work(client);
    await client.query('commit').catch(tell);
    return result;
  } catch (error) {
    const state = sqlState(error);
    const silent = error instanceof LedgerUnavailable && state === undefined;
    usable = !silent && (await rollBack(client)) && state !== READ_ONLY;
    throw error;
  } finally {
    // A connection in an unknown state is not given back to the pool, nor one to a server that was demoted: its name may
    // point to the new one by now.
    client.release(!usable);
  }
}

function rollBack(client: pg.PoolClient): Promise<boolean> {
  return client.query('rollback').then(
    () => true,
    () => false,
  );
}

/** The SQLSTATE of an error or of its cause. */
export function sqlState(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return error.code;
  if (error instanceof Error && error.cause !== undefined) return sqlState(error.cause);
  return undefined;
}

/**
 * SQLSTATE classes (PostgreSQL, Appendix A): 08 connection, 53 resources, 57 operator intervention (also statement
 * time-out), 58 system, 25006 and 25P03 read-only and idle in transaction, 55P03 lock time-out.
 */
const AWAY = /^(08|53|57|58|25006|25P03|55P03)/;

function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return 'errno' in error || /timeout|terminated|not queryable|Connection|ECONN/i.test(error.message);
}

/** Throws the driver's error again, as {@link LedgerUnavailable} if that is what it means. */
function tell(error: unknown): never {
  const state = sqlState(error);
  if (state === undefined ? isConnectionError(error) : AWAY.test(state)) {
    storeFailures.inc({ store: 'postgres' });
    throw new LedgerUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
  }
  throw error;
}

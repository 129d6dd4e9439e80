/** The connection to Postgres: time limits, retries, exact numbers, and what it survives. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool, LedgerUnavailable, query, sqlState, transaction, type Pool } from '../../src/ledger/db.ts';
import { getOrder, record } from '../../src/ledger/orders.ts';
import { GateUnavailable } from '../../src/gate/gate.ts';
import { madeUp, newSale, openHouse, type House } from './house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

/** A pool of its own, gone when the work is. */
async function withPool(but: Partial<Parameters<typeof createPool>[0]>, work: (pool: Pool) => Promise<void>) {
  const pool = createPool({
    connectionString: house.databaseUrl,
    max: 4,
    connectTimeoutMs: 1000,
    lockTimeoutMs: 1000,
    statementTimeoutMs: 1000,
    idleInTransactionTimeoutMs: 1000,
    onIdleError: () => undefined,
    ...but,
  });
  await work(pool).finally(() => pool.end());
}
const select = (text: string) => ({ name: text, text });
const failure = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error);

describe('time limits', () => {
  test('a pool of 2 with 100 slow queries: time-outs, all named as such, then recovery', async () => {
    await withPool({ max: 2, connectTimeoutMs: 300, statementTimeoutMs: 200 }, async (pool) => {
      const started = performance.now();
      const failures = await Promise.all(
        Array.from({ length: 100 }, () => failure(query(pool, select('select pg_sleep(10)')))),
      );
      expect(performance.now() - started).toBeLessThan(10_000);
      for (const error of failures) expect(error).toBeInstanceOf(LedgerUnavailable);
      expect(await query(pool, select('select 1 as one'))).toEqual([{ one: 1 }]);
      expect({ all: pool.totalCount, waiting: pool.waitingCount }).toMatchObject({ waiting: 0 });
    });
  });

  test('the same inside transactions, each rolled back', async () => {
    await withPool({ max: 2, connectTimeoutMs: 300, statementTimeoutMs: 200 }, async (pool) => {
      const failures = await Promise.all(
        Array.from({ length: 50 }, () =>
          failure(transaction(pool, (client) => query(client, select('select pg_sleep(10)')))),
        ),
      );
      for (const error of failures) expect(error).toBeInstanceOf(LedgerUnavailable);
      expect(await transaction(pool, (client) => query(client, select('select 1 as one')))).toEqual([{ one: 1 }]);
    });
  });

  test('a lock that is not given in time is the ledger being away, not a bug', async () => {
    const saleId = await newSale(house);
    await house.db.query('begin');
    await house.db.query('select 1 from sale_stock where sale_id = $1 for update', [saleId]);
    await withPool({ lockTimeoutMs: 100 }, async (pool) => {
      const error = await failure(record(pool, [madeUp(saleId, 'ann')]));
      expect(error).toBeInstanceOf(LedgerUnavailable);
      expect(sqlState(error)).toBe('55P03');
      await house.db.query('rollback');
      expect([...(await record(pool, [madeUp(saleId, 'ann')])).values()]).toEqual(['PENDING_PAYMENT']);
    });
  });

  test('a session that idles in its transaction is ended by the server; the process lives and the pool recovers', async () => {
    const uncaught: unknown[] = [];
    const hear = (error: unknown) => void uncaught.push(error);
    process.on('uncaughtException', hear);
    await withPool({ idleInTransactionTimeoutMs: 100 }, async (pool) => {
      const error = await failure(
        transaction(pool, async (client) => {
          await query(client, select('select 1'));
          await sleep(400); // frozen: the event loop was blocked, or another store did not answer
          await query(client, select('select 2'));
        }),
      );
      expect(error).toBeInstanceOf(LedgerUnavailable);
      expect(await transaction(pool, (client) => query(client, select('select 1 as one')))).toEqual([{ one: 1 }]);
    });
    process.off('uncaughtException', hear);
    expect(uncaught).toEqual([]);
  });

  test('a connection that dies in mid-transaction is not given back to the pool', async () => {
    await withPool({ max: 1 }, async (pool) => {
      const error = await failure(
        transaction(pool, async (client) => {
          const [me] = await query<{ pid: number }>(client, select('select pg_backend_pid() as pid'));
          await house.db.query('select pg_terminate_backend($1)', [me?.pid]);
          await sleep(50);
          await query(client, select('select 1'));
        }),
      );
      expect(error).toBeInstanceOf(LedgerUnavailable);
      expect(await query(pool, select('select 1 as one'))).toEqual([{ one: 1 }]);
    });
  });
});

test('what another store could not do inside a transaction is not told as the ledger being away', async () => {
  const error = await failure(
    transaction(house.pool, () => Promise.reject(new GateUnavailable('figures: Connection is closed.'))),
  );
  expect(error).toBeInstanceOf(GateUnavailable);
  expect(error).not.toBeInstanceOf(LedgerUnavailable);
});

describe('serialization failures and deadlocks', () => {
  test('a deadlock is tried again, and has one effect', async () => {
    await house.db.query('create table rows (id int primary key, n int); insert into rows values (1, 0), (2, 0)');
    let runs = 0;
    let both = 0;
    const meet = async () => {
      both += 1;
      for (let n = 0; both < 2 && n < 200; n += 1) await sleep(5);
    };
    const add = (first: number, second: number) =>
      transaction(house.pool, async (client) => {
        runs += 1;
        await client.query('update rows set n = n + 1 where id = $1', [first]);
        await meet();
        await client.query('update rows set n = n + 1 where id = $1', [second]);
      });
    await Promise.all([add(1, 2), add(2, 1)]);
    expect(runs).toBeGreaterThan(2);
    expect((await house.db.query('select n from rows order by id')).rows).toEqual([{ n: 2 }, { n: 2 }]);
  });

  test('a serialization failure is tried again, and has one effect', async () => {
    await house.db.query('create table counter (n int); insert into counter values (0)');
    let runs = 0;
    await Promise.all(
      Array.from({ length: 2 }, () =>
        transaction(house.pool, async (client) => {
          runs += 1;
          await client.query('set transaction isolation level serializable');
          const { rows } = await client.query<{ n: number }>('select n from counter');
          if (runs <= 2) await sleep(50);
          await client.query('update counter set n = $1', [(rows[0]?.n ?? 0) + 1]);
        }),
      ),
    );
    expect(runs).toBeGreaterThan(2);
    expect((await house.db.query('select n from counter')).rows).toEqual([{ n: 2 }]);
  });

  test('not for ever: after five attempts the failure is told; any other error at once', async () => {
    const attempts = async (code: string) => {
      let runs = 0;
      const error = await failure(
        transaction(house.pool, async (client) => {
          runs += 1;
          await client.query(`do $$ begin raise exception 'no' using errcode = '${code}'; end $$`);
        }),
      );
      expect(sqlState(error)).toBe(code);
      return runs;
    };
    expect(await attempts('40001')).toBe(5);
    expect(await attempts('40P01')).toBe(5);
    expect(await attempts('23505')).toBe(1);
  });
});

describe('numbers', () => {
  test('a bigint is exact up to 2^53 - 1, and refused beyond', async () => {
    const read = (value: string) => query<{ n: number }>(house.pool, select(`select ${value}::bigint as n`));
    expect(await read('9007199254740991')).toEqual([{ n: Number.MAX_SAFE_INTEGER }]);
    expect(await read('-9007199254740991')).toEqual([{ n: Number.MIN_SAFE_INTEGER }]);
    for (const beyond of ['9007199254740992', '9007199254740993', '-9007199254740993', '9223372036854775807']) {
      expect(await failure(read(beyond)), beyond).toBeInstanceOf(RangeError);
    }
    expect(await read('7')).toEqual([{ n: 7 }]); // the connection is still good
  });

  test('the driver elsewhere in the process is left alone', async () => {
    const client = new pg.Client({ connectionString: house.databaseUrl });
    await client.connect();
    expect((await client.query('select 1::bigint as n')).rows).toEqual([{ n: '1' }]);
    await client.end();
  });

  test('the largest amount goes through the ledger unchanged', async () => {
    const saleId = await newSale(house);
    const hold = madeUp(saleId, 'rich', { amount: Number.MAX_SAFE_INTEGER });
    await record(house.pool, [hold]);
    expect((await getOrder(house.pool, hold))?.amount).toBe(9007199254740991);
  });
});

test('a migration that adds a column does not stop processes that run with prepared statements', async () => {
  await withPool({ max: 1 }, async (pool) => {
    const saleId = await newSale(house);
    const { cancel, expireDue, unreleased } = await import('../../src/ledger/orders.ts');
    const start = { saleId: '', reservationId: '00000000-0000-0000-0000-000000000000' };
    const use = async (user: string) => {
      const [one, two] = [madeUp(saleId, user), madeUp(saleId, `${user}-late`, { reservedAt: 1, expiresAt: 2 })];
      await record(pool, [one, two]);
      expect((await cancel(pool, one))?.status).toBe('CANCELLED');
      expect((await expireDue(pool, 10)).map(({ userId }) => userId)).toEqual([`${user}-late`]);
      expect((await getOrder(pool, one))?.status).toBe('CANCELLED');
      return (await unreleased(pool, start, 10)).length;
    };
    expect(await use('before')).toBe(2);
    await house.db.query(`alter table sale_orders add column note text not null default ''`);
    expect(await use('after')).toBe(4);
    await house.db.query('alter table sale_orders drop column note');
  });
});

/** Postgres is away, restarted in mid-transaction, out of connections, or held by a worker that froze. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { migrate } from '../../src/ledger/migrate.ts';
import { queueDepth } from '../../src/queue/depth.ts';
import { workerOptions } from '../../src/wiring.ts';
import { startWorker } from '../../src/worker/worker.ts';
import { SECRET } from '../ledger/house.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { privatePostgres, type Server } from '../support/servers.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { arrows } from './arrows.ts';
import { SLACK_MS, expectAnswered, expectNothingLost, underFire } from './fire.ts';
import * as h from './house.ts';
import { start } from './process.ts';

let server: Server & { url: string };
let stores: Stores;
let house: h.House;
beforeAll(async () => {
  server = await privatePostgres();
  await migrate(server.url);
  stores = await freshStores({ visibilitySeconds: 2 });
  const fresh = { ...stores, databaseUrl: server.url, env: { ...stores.env, DATABASE_URL: server.url } };
  house = await h.openHouse({ fresh, env: { DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: '1000' } });
  // The test's own connection must survive a restart, too.
  await house.db.end();
  const pool = new pg.Pool({ connectionString: server.url, max: 2 });
  pool.on('error', () => undefined);
  house.db = pool as unknown as h.House['db'];
});
afterAll(async () => {
  await h.closeHouse(house);
  await stores.drop();
});

const status = async (hold: { reservationId: string }) => (await h.orderOf(house, hold))?.status;

/** The provider reports that it was paid. */
function report({ app }: Pick<h.House, 'app'>, hold: Hold) {
  const { reservationId, amount, currency } = hold;
  const data = { paymentId: `pay-${reservationId}`, reservationId, amount, currency };
  const payload = JSON.stringify({ type: 'payment.succeeded', timestamp: new Date().toISOString(), data });
  const [id, at] = [`evt-${reservationId}`, new Date()];
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(SECRET).sign(id, at, payload),
  };
  return app.inject({ method: 'POST', url: '/webhooks/payments', headers, payload });
}

/** Keeps a sale's stock row to itself until told otherwise. */
async function lockStock(saleId: string): Promise<{ release: () => Promise<void> }> {
  const client = new pg.Client({ connectionString: server.url });
  client.on('error', () => undefined); // a restart ends it
  await client.connect();
  await client.query('begin');
  await client.query('select 1 from sale_stock where sale_id = $1 for update', [saleId]);
  return { release: () => client.end() };
}

const someoneWaitsForALock = async () => {
  const { rowCount } = await house.db.query(
    `select 1 from pg_stat_activity where application_name = 'flashgate' and wait_event_type = 'Lock'`,
  );
  return (rowCount ?? 0) > 0;
};

const worker = () => startWorker(house.stores, house.sqs, workerOptions(house.config));

describe(arrows.postgresAway.when, () => {
  test(
    'buyers win all the same and nothing is acknowledged; back, the worker goes on by itself',
    { timeout: 60_000 },
    async () => {
      const saleId = await h.newSale(house, { total: 100_000 });
      const before = await h.winOrder(house, saleId, 'before');
      const working = worker();
      try {
        server.kill('SIGKILL');
        await server.exited;
        const { answers } = await underFire(house, saleId, (fire) => fire.more(100));
        expectAnswered(house, answers, ['overloaded']);
        const winners = answers.filter(({ word }) => word === 'ok');
        const { waiting, inFlight } = await queueDepth(house.sqs, house.queueUrl, 2000);
        expect({ waiting, inFlight }, 'one message for each, none acknowledged, none received for nothing').toEqual({
          ...{ waiting: winners.length, inFlight: 0 },
        });
        const began = performance.now();
        const asked = await Promise.all([
          report(house, before),
          house.app.inject({ url: `/sales/${saleId}/reservations/${before.reservationId}?userId=before` }),
        ]);
        for (const answer of asked) expect(answer.json()).toMatchObject({ status: 503, code: 'ledger_unavailable' });
        expect(performance.now() - began).toBeLessThan(house.config.REQUEST_DEADLINE_MS + SLACK_MS);
        await server.restart();
        await h.until(async () => (await h.messages(house)) === 0);
        expect((await report(house, before)).statusCode).toBe(200);
        expect(await status(before)).toBe('PAID');
        await expectNothingLost(house, saleId, answers);
      } finally {
        await working.stop();
      }
    },
  );

  test('restarted while the worker is in the middle of a transaction: one order', { timeout: 60_000 }, async () => {
    const saleId = await h.newSale(house);
    const lock = await lockStock(saleId);
    const hold = await h.winQueued(house, saleId, 'ann');
    const working = worker();
    try {
      await h.until(someoneWaitsForALock);
      await server.restart();
      await lock.release();
      await h.until(async () => (await h.messages(house)) === 0);
    } finally {
      await working.stop();
    }
    expect(await status(hold)).toBe('PENDING_PAYMENT');
    expect(await h.books(house, saleId)).toMatchObject({ sold: 1, held: 1 });
    await expectNothingLost(house, saleId, []);
  });
});

test(
  'a pool that is used up: 503 in time for who needs the ledger, buyers win, and it recovers',
  { timeout: 60_000 },
  async () => {
    const saleId = await h.newSale(house);
    const hold = await h.winOrder(house, saleId, 'ann');
    const api = await h.anotherApi(house, { DB_POOL: '2' });
    try {
      const url = `/sales/${saleId}/reservations/${hold.reservationId}?userId=ann`;
      expect((await api.app.inject({ url })).statusCode).toBe(200);
      const busy = await Promise.all([api.wired.stores.pool.connect(), api.wired.stores.pool.connect()]);
      const began = performance.now();
      const asking = Promise.all(Array.from({ length: 20 }, () => api.app.inject({ url })));
      const wins = await h.press(api, saleId, 'bob');
      const asked = await asking;
      const took = performance.now() - began;
      for (const client of busy) client.release();
      expect(wins).toMatchObject({ status: 202 });
      for (const answer of asked) expect(answer.json()).toMatchObject({ status: 503, code: 'ledger_unavailable' });
      expect(took).toBeLessThan(house.config.REQUEST_DEADLINE_MS + SLACK_MS);
      await h.until(async () => (await api.app.inject({ url })).statusCode === 200);
      expect(api.wired.stores.pool.waitingCount).toBe(0);
    } finally {
      await api.close();
    }
    await expectNothingLost(house, saleId, []);
  },
);

test(
  'one worker frozen inside its transaction: its locks end with its time, another records, one order each',
  { timeout: 60_000 },
  async () => {
    const saleId = await h.newSale(house);
    const lock = await lockStock(saleId);
    const first = await h.winQueued(house, saleId, 'ann');
    const frozen = start(['work'], { ...house.settings, LOG_LEVEL: 'info' });
    await frozen.saying('the worker receives');
    await h.until(someoneWaitsForALock);
    frozen.kill('SIGSTOP');
    await lock.release(); // its session has the row from here on, and nobody who ends the transaction
    const second = await h.winQueued(house, saleId, 'bob');
    const working = worker();
    try {
      await h.until(async () => (await h.messages(house)) === 0, 30_000);
    } finally {
      await working.stop();
    }
    frozen.kill('SIGCONT');
    const third = await h.winQueued(house, saleId, 'cyd', 2);
    await h.until(async () => (await h.messages(house)) === 0);
    for (const hold of [first, second, third]) expect(await status(hold)).toBe('PENDING_PAYMENT');
    expect(await frozen.stop()).toEqual({ code: 0, signal: null });
    expect(await h.books(house, saleId)).toMatchObject({ sold: 4, held: 4 });
    await expectNothingLost(house, saleId, []);
  },
);

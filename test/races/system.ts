/** The program's own parts on real stores of a test's own, and what a test looks at. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { readConfig, type Config } from '../../src/config.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import type { SaleSettings } from '../../src/domain/sale.ts';
import { Gate } from '../../src/gate/gate.ts';
import { enqueue } from '../../src/operations/enqueue.ts';
import { putSale } from '../../src/operations/sales.ts';
import { createLogger, wire, type Wired } from '../../src/wiring.ts';
import { freshStores } from '../support/stores.ts';
import { Probe } from '../gate/probe.ts';
import { until } from './until.ts';

export type System = Wired & {
  config: Config;
  /** A client of the test's own, to look and to interfere. */
  redis: Redis;
  stop: () => Promise<void>;
};

/** Time limits for a machine that is busy with much else: what is tested here is not how long things take. */
const PATIENT = {
  ...{ GATE_TIMEOUT_MS: '1900', QUEUE_TIMEOUT_MS: '1900', QUEUE_VISIBILITY_SECONDS: '120' },
  ...{ DB_CONNECT_TIMEOUT_MS: '30000', DB_LOCK_TIMEOUT_MS: '30000', DB_STATEMENT_TIMEOUT_MS: '30000' },
};

/** @param env settings that differ from the defaults */
export async function startSystem(env: Record<string, string> = {}): Promise<System> {
  const fresh = await freshStores();
  for (const [name, value] of Object.entries(fresh.env)) if (name.startsWith('AWS_')) process.env[name] = value;
  const config = readConfig({ ...fresh.env, LOG_LEVEL: 'silent', ...PATIENT, ...env });
  const wired = wire(config, createLogger(config));
  const redis = new Redis(config.REDIS_URL);
  await until('the gate can be reached', async () => (await wired.stores.gate.check(), true));
  return {
    ...wired,
    config,
    redis,
    stop: async () => {
      await wired.close();
      redis.disconnect();
      await fresh.drop();
    },
  };
}

const DAY_MS = 86_400_000;

export function saleSettings(but: Partial<SaleSettings> = {}): SaleSettings {
  return {
    ...{ name: 'a sale', total: 10, holdSeconds: 600, maxPerReservation: 4, price: { amount: 500, currency: 'EUR' } },
    startsAt: new Date(Date.now() - DAY_MS).toISOString(),
    endsAt: new Date(Date.now() + DAY_MS).toISOString(),
    ...but,
  };
}

/** A new sale, open at the gate. @returns its id */
export async function openSale({ stores }: Pick<System, 'stores'>, but: Partial<SaleSettings> = {}): Promise<string> {
  const saleId = randomUUID();
  await putSale(stores, saleId, saleSettings(but));
  return saleId;
}

export const inTime = () => performance.now() + 60_000;

/** As another API process would have it: its own connection. */
export function anotherGate(system: System): { gate: Gate; close: () => void } {
  const redis = new Redis(system.config.REDIS_URL);
  return { gate: new Gate(redis, { timeoutMs: 30_000, batch: 256, pending: 20_000 }), close: () => redis.disconnect() };
}

export function ask(gate: Gate, saleId: string, userId: string, qty = 1, reservationId: string = randomUUID()) {
  return gate.reserve(saleId, { userId, reservationId, qty }, inTime());
}

/** A press that wins and is in the queue. */
export async function win(system: System, saleId: string, userId: string, qty = 1): Promise<Hold> {
  const answer = await ask(system.stores.gate, saleId, userId, qty);
  if (answer.outcome !== 'ok') throw new Error(`${userId} did not win: ${answer.outcome}`);
  await enqueue(system.stores, answer.hold, inTime());
  await system.stores.gate.drained();
  return answer.hold;
}

/** As if that much time had passed for these orders. The database lets nobody change a promise, but its owner may. */
export async function passTime({ stores }: Pick<System, 'stores'>, reservationIds: string[], ms: number) {
  const client = await stores.pool.connect();
  try {
    await client.query('begin');
    await client.query('set local session_replication_role = replica');
    await client.query(
      `update sale_orders set reserved_at = reserved_at - $2 * interval '1 millisecond',
         expires_at = expires_at - $2 * interval '1 millisecond' where reservation_id = any($1::uuid[])`,
      [reservationIds, ms],
    );
    await client.query('commit');
  } finally {
    client.release();
  }
}

export type LedgerView = {
  total: number;
  sold: number;
  live: number;
  journal: number;
  /** Buyers with more than one live order. */
  doubles: number;
  orders: Map<string, { userId: string; qty: number; status: string; reason: string | null; released: boolean }>;
};

export async function ledger({ stores }: Pick<System, 'stores'>, saleId: string): Promise<LedgerView> {
  const { rows } = await stores.pool.query<Omit<LedgerView, 'orders'>>(
    `select total, sold,
       (select coalesce(sum(qty), 0)::int from sale_orders where sale_id = $1 and status in ('PENDING_PAYMENT', 'PAID')) as live,
       (select coalesce(sum(delta), 0)::int from ledger_entries where sale_id = $1) as journal,
       (select count(*)::int from (select from sale_orders where sale_id = $1 and status in ('PENDING_PAYMENT', 'PAID')
          group by user_id having count(*) > 1) as twice) as doubles
     from sale_stock where sale_id = $1`,
    [saleId],
  );
  const [sums] = rows;
  if (!sums) throw new Error(`there is no sale ${saleId}`);
  const orders = await stores.pool.query<{
    id: string;
    userId: string;
    qty: number;
    status: string;
    reason: string | null;
    released: boolean;
  }>(
    `select reservation_id as id, user_id as "userId", qty, status, reason, gate_released_at is not null as released
     from sale_orders where sale_id = $1`,
    [saleId],
  );
  return { ...sums, orders: new Map(orders.rows.map(({ id, ...order }) => [id, order])) };
}

/** The rules of gate and ledger, each by itself. @returns both */
export async function checkBoth(system: Pick<System, 'stores' | 'redis'>, saleId: string) {
  const probe = new Probe(system.redis, saleId);
  await probe.checkRules();
  const [gate, books] = [await probe.read(), await ledger(system, saleId)];
  expect(books.sold, 'sold is what is live').toBe(books.live);
  expect(books.journal, 'the journal sums to sold').toBe(books.sold);
  expect(books.sold, 'never oversold').toBeLessThanOrEqual(books.total);
  expect(books.doubles, 'one live order per buyer').toBe(0);
  return { gate, ledger: books };
}

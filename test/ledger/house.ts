/**
 * What the tests of ledger, worker and keeper share: real stores of a file's own, wired as the product wires them, sales,
 * holds that were really won at the gate, a log that can be read, and the books compared.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { pino } from 'pino';
import { expect } from 'vitest';
import { runAudit, type AuditReport } from '../../src/audit/audit.ts';
import { readConfig, type Config } from '../../src/config.ts';
import { formatHold, parseHold, type Hold, type OrderStatus } from '../../src/domain/reservation.ts';
import type { SaleSettings } from '../../src/domain/sale.ts';
import type { KnownEvent } from '../../src/domain/payment.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { putSale } from '../../src/operations/sales.ts';
import { wire, type Wired } from '../../src/wiring.ts';
import { freshStores, type Stores as Fresh } from '../support/stores.ts';

export const PRICE = 500;
export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const DAY_MS = 86_400_000;

export type Line = { level: number; msg: string; [member: string]: unknown };

/** A log that is kept instead of printed. */
export function recorder() {
  const lines: Line[] = [];
  const write = (text: string) => void lines.push(JSON.parse(text) as Line);
  return { lines, logger: pino({ level: 'info' }, { write }) };
}

type Settings = { env?: Record<string, string>; visibilitySeconds?: number; fresh?: Fresh };

/** For a machine with much else to do: no test waits for these but where it sets its own. */
const PATIENT = {
  ...{ DB_CONNECT_TIMEOUT_MS: '10000', DB_LOCK_TIMEOUT_MS: '8000', DB_STATEMENT_TIMEOUT_MS: '12000' },
  ...{ GATE_TIMEOUT_MS: '1900', QUEUE_TIMEOUT_MS: '1900' },
};

export type House = Awaited<ReturnType<typeof openHouse>>;

/**
 * Stores of a test file's own and everything that is wired to them.
 * @param settings env: settings of the product; fresh: stores to use instead of new ones
 */
export async function openHouse({ env = {}, visibilitySeconds, fresh }: Settings = {}) {
  const stores = fresh ?? (await freshStores(visibilitySeconds === undefined ? {} : { visibilitySeconds }));
  const log = recorder();
  const settings: Record<string, string> = { ...stores.env, ...PATIENT, WEBHOOK_SECRET: SECRET, ...env };
  // The AWS client takes its credentials from the environment, as everywhere.
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) process.env[name] ??= settings[name] ?? '';
  const config = readConfig(settings);
  const wired = wire(config, log.logger);
  const db = new pg.Client({ connectionString: stores.databaseUrl });
  db.on('error', () => undefined); // a test that ends connections says so itself
  await db.connect();
  const redis = new Redis(stores.redisUrl);
  await gateIsThere(wired);
  return {
    ...{ config, wired, db, redis, settings },
    ...{ stores: wired.stores, pool: wired.stores.pool, gate: wired.stores.gate, sqs: wired.sqs },
    ...{ log: log.lines, logger: log.logger, queueUrl: stores.queueUrl, dlqUrl: stores.dlqUrl },
    ...{ databaseUrl: stores.databaseUrl, redisUrl: stores.redisUrl },
    /** Another process as it were: clients of its own on the same stores. */
    another: (more: Record<string, string> = {}) => {
      const own = recorder();
      const again: Config = readConfig({ ...settings, ...more });
      return { ...wire(again, own.logger), config: again, log: own.lines };
    },
    close: async () => {
      await db.end();
      redis.disconnect();
      await wired.close();
      if (!fresh) await stores.drop();
    },
  };
}

/** The client asks for nothing before it is connected: see wiring.ts. */
export async function gateIsThere({ stores }: Pick<Wired, 'stores'>): Promise<void> {
  await until(() =>
    stores.gate.check().then(
      () => true,
      () => false,
    ),
  );
}

/** Looks every few milliseconds until it is so. */
export async function until(so: () => boolean | Promise<boolean>, withinMs = 15_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await so())) {
    if (performance.now() > end) throw new Error(`not so after ${withinMs} ms: ${so.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

let sales = 0;

/** A new sale with an open gate. @returns its id */
export async function newSale({ stores }: Pick<House, 'stores'>, but: Partial<SaleSettings> = {}): Promise<string> {
  const saleId = `sale-${(sales += 1)}`;
  await changeSale({ stores }, saleId, but);
  return saleId;
}

export function changeSale({ stores }: Pick<House, 'stores'>, saleId: string, but: Partial<SaleSettings> = {}) {
  return putSale(stores, saleId, {
    name: 'A sale',
    total: 10,
    startsAt: new Date(Date.now() - DAY_MS).toISOString(),
    endsAt: new Date(Date.now() + DAY_MS).toISOString(),
    holdSeconds: 600,
    maxPerReservation: 5,
    price: { amount: PRICE, currency: 'EUR' },
    ...but,
  });
}

/** A hold that was won at the gate. */
export async function win({ gate }: Pick<House, 'gate'>, saleId: string, userId: string, qty = 1): Promise<Hold> {
  const answer = await gate.reserve(saleId, { userId, reservationId: randomUUID(), qty }, performance.now() + 5000);
  if (answer.outcome !== 'ok') throw new Error(`${userId} got ${answer.outcome}`);
  return answer.hold;
}

/** A hold that the gate knows nothing of: one that it has forgotten. */
export function madeUp(saleId: string, userId: string, but: Partial<Hold> = {}): Hold {
  const qty = but.qty ?? 1;
  const now = Date.now();
  return {
    ...{ reservationId: randomUUID(), saleId, userId, qty, amount: qty * PRICE, currency: 'EUR' },
    ...{ reservedAt: now, expiresAt: now + 600_000 },
    ...but,
  };
}

/** A provider's event about a hold's payment, of the promised amount. */
export function event(hold: Hold, type: KnownEvent['type'], but: Partial<KnownEvent> = {}): KnownEvent {
  const { reservationId, amount, currency } = hold;
  return { eventId: randomUUID(), type, paymentId: `pay-${reservationId}`, reservationId, amount, currency, ...but };
}

/** Lets time pass for an order and its hold: their times are moved back, behind the trigger that forbids it. */
export async function moveBack({ db, redis }: Pick<House, 'db' | 'redis'>, hold: Hold, ms: number): Promise<void> {
  await db.query('begin; set local session_replication_role = replica');
  const { rowCount } = await db.query(
    `update sale_orders set reserved_at = reserved_at - $2 * interval '1 ms', expires_at = expires_at - $2 * interval '1 ms'
     where reservation_id = $1`,
    [hold.reservationId, ms],
  );
  await db.query(
    `update checkout_pages set hold_expires_at = hold_expires_at - $2 * interval '1 ms' where reservation_id = $1`,
    [hold.reservationId, ms],
  );
  await db.query('commit');
  if (rowCount === 0) return;
  const [, , holds] = gateKeys(hold.saleId);
  const text = await redis.hget(holds, hold.userId);
  const held = text === null ? undefined : parseHold(hold.saleId, hold.userId, text);
  if (held?.reservationId !== hold.reservationId) return;
  const past = { ...held, reservedAt: held.reservedAt - ms, expiresAt: held.expiresAt - ms };
  await redis.hset(holds, hold.userId, formatHold(past));
}

export async function orderOf({ db }: Pick<House, 'db'>, { reservationId }: Pick<Hold, 'reservationId'>) {
  const { rows } = await db.query<{ status: OrderStatus; reason: string | null; live: string | null; marked: boolean }>(
    `select status, reason, live_reservation_id as live, gate_released_at is not null as marked
     from sale_orders where reservation_id = $1`,
    [reservationId],
  );
  return rows[0];
}

/** What the ledger has of a sale's units, and the gate. */
export async function books({ db, gate }: Pick<House, 'db' | 'gate'>, saleId: string) {
  const { rows } = await db.query<{ total: number; sold: number; live: number; journal: number }>(
    `select total, sold,
       (select coalesce(sum(qty), 0)::int from sale_orders where sale_id = $1 and status in ('PENDING_PAYMENT', 'PAID')) as live,
       (select coalesce(sum(delta), 0)::int from ledger_entries where sale_id = $1) as journal
     from sale_stock where sale_id = $1`,
    [saleId],
  );
  const [ledger] = rows;
  if (!ledger) throw new Error(`no sale ${saleId}`);
  expect(ledger, `the ledger of ${saleId} adds up`).toMatchObject({ live: ledger.sold, journal: ledger.sold });
  const at = await gate.figures(saleId);
  if (at) expect(at.stock + at.held + at.forfeited, `the gate of ${saleId} adds up`).toBe(at.total);
  return { sold: ledger.sold, stock: at?.stock, held: at?.held, forfeited: at?.forfeited };
}

/** The product's own outside check, over everything that the file's tests left behind. */
export async function audit({ databaseUrl, redisUrl }: Pick<House, 'databaseUrl' | 'redisUrl'>): Promise<AuditReport> {
  return runAudit({ databaseUrl, redisUrl, graceMs: 600_000 }, () => undefined);
}

/** Fails with the names of the checks that do not hold. */
export async function expectSound(house: Pick<House, 'databaseUrl' | 'redisUrl'>): Promise<void> {
  const report = await audit(house);
  expect(report.checks.filter(({ broken }) => broken > 0)).toEqual([]);
  expect(report.verdict).toBe('holds');
}

/**
 * What the tests of repairs share: a house (see test/ledger/house.ts) with the API built on it, the keeper's pass, the
 * worker until the queue is empty, a gate that goes back to what it was, a queue that loses everything, and the audit.
 */
import { PurgeQueueCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { expect, inject } from 'vitest';
import { runAudit } from '../../src/audit/audit.ts';
import { formatHold, type Hold } from '../../src/domain/reservation.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { record } from '../../src/ledger/orders.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { getSale } from '../../src/ledger/sales.ts';
import { buildApp } from '../../src/http/app.ts';
import { keepOnce, newMemory, type KeeperMemory } from '../../src/keeper/keeper.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { queueDepth } from '../../src/queue/depth.ts';
import { formatMessage } from '../../src/queue/message.ts';
import { keeperOptions, workerOptions, type Wired } from '../../src/wiring.ts';
import { startWorker } from '../../src/worker/worker.ts';
import {
  event,
  gateIsThere,
  newSale as plainSale,
  openHouse as openPlainHouse,
  until,
  win,
  type House as PlainHouse,
} from '../ledger/house.ts';

export { books, changeSale, event, gateIsThere, madeUp, moveBack, orderOf, until, win } from '../ledger/house.ts';

/** Time limits that a test can wait for. A full pass every time; a hold is lost by the queue only when it is made old. */
export const SHORT = {
  NODE_ENV: 'test',
  AUTH_MODE: 'none',
  ADMIN_TOKEN: 'an admin token of the tests'.replaceAll(' ', '-'),
  KEEPER_INTERVAL_MS: '50',
  RECONCILE_INTERVAL_MS: '50',
  REQUEST_DEADLINE_MS: '1500',
  GATE_TIMEOUT_MS: '400',
  QUEUE_TIMEOUT_MS: '700',
  UNQUEUED_GRACE_MS: '60000',
  LOST_GRACE_MS: '3600000',
  REBUILD_DRAIN_MS: '60000',
  DB_LOCK_TIMEOUT_MS: '800',
  DB_STATEMENT_TIMEOUT_MS: '1000',
  QUEUE_VISIBILITY_SECONDS: '2',
  QUEUE_WAIT_SECONDS: '0',
  WORKER_RECEIVERS: '1',
  WORKER_BATCH: '10',
} as const;

export type House = PlainHouse & Pick<Awaited<ReturnType<typeof buildApp>>, 'app' | 'directory'>;

type Settings = NonNullable<Parameters<typeof openPlainHouse>[0]>;

/** Closed by `closeHouse`. The keeper's leases are renewed until then. */
export async function openHouse(settings: Settings = {}): Promise<House> {
  // The AWS client looks for its credentials there and nowhere else.
  for (const [name, value] of Object.entries(inject('services').env))
    if (name.startsWith('AWS_')) process.env[name] = value;
  const plain = await openPlainHouse({ ...settings, env: { ...SHORT, ...settings.env } });
  const { stores, sqs, config, logger } = plain;
  const { app, directory } = await buildApp({ stores, sqs, config, logger });
  plain.wired.leases.start();
  return Object.assign(plain, { app, directory });
}

export async function closeHouse(house: House): Promise<void> {
  await house.app.close();
  await house.wired.leases.stop();
  await house.close();
}

/** An API of its own on the same stores, some of its settings different: another process as it were. */
export async function anotherApi(house: House, env: Record<string, string>) {
  const { config, log, ...wired } = house.another(env);
  await gateIsThere(wired);
  const { app, directory } = await buildApp({ stores: wired.stores, sqs: wired.sqs, config, logger: wired.logger });
  await directory.refresh();
  const close = async () => {
    await app.close();
    await wired.close();
  };
  return { app, wired, config, log, close };
}

/** A new sale with an open gate, which the API knows of. @returns its id */
export async function newSale(house: House, settings: Parameters<typeof plainSale>[1] = {}): Promise<string> {
  const saleId = await plainSale(house, settings);
  await house.directory.refresh();
  return saleId;
}

export async function press({ app }: Pick<House, 'app'>, saleId: string, userId: string, qty = 1) {
  const response = await app.inject({ method: 'POST', url: `/sales/${saleId}/reserve`, payload: { userId, qty } });
  const body = response.json<{ outcome?: string; code?: string; reservationId?: string }>();
  return { status: response.statusCode, word: body.outcome ?? body.code, id: body.reservationId };
}

/** Wins, and the queue has it: what is left of a press that went well. */
export async function winQueued(house: House, saleId: string, userId: string, qty = 1): Promise<Hold> {
  const hold = await win(house, saleId, userId, qty);
  await send(house, hold);
  await house.gate.queued(saleId, hold);
  return hold;
}

/** Wins, and has an order. */
export async function winOrder(house: House, saleId: string, userId: string, qty = 1): Promise<Hold> {
  const hold = await win(house, saleId, userId, qty);
  await house.gate.queued(saleId, hold);
  await recordHolds(house.stores, [hold]);
  return hold;
}

export async function send({ sqs, queueUrl }: Pick<House, 'sqs' | 'queueUrl'>, hold: Hold): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: formatMessage(hold) }));
}

/**
 * One pass of the keeper, of everything that it does; again, when it found out in it that somebody else had drawn a newer
 * token for a sale, or when a full pass over a sale, of which it does a piece at a time, has not ended (a busy machine).
 * @throws {Error} what a part of it logged as failed
 */
export async function keep(
  house: Pick<House, 'wired' | 'config' | 'log'>,
  memory: KeeperMemory = newMemory(),
): Promise<void> {
  const { stores, sqs, leases } = house.wired;
  for (const walk of memory.walks.values()) walk.endedAt = -Infinity; // the interval between full passes has passed
  for (let again = true; again;) {
    const before = house.log.length;
    await keepOnce({ stores, sqs, leases, provider: undefined }, keeperOptions(house.config), memory);
    const said = house.log.slice(before);
    const failed = said.filter(({ msg }) => msg.includes('failed; the next pass'));
    expect(failed.map(({ msg, err }) => `${msg}: ${JSON.stringify(err)}`)).toEqual([]);
    const underWay = [...memory.walks.values()].some(({ steps }) => steps);
    again = underWay || said.some(({ msg }) => msg === 'a lease is let go');
  }
}

/** A worker until the queue has nothing more, neither waiting nor in flight. */
export async function drain({ wired, config }: Pick<House, 'wired' | 'config'>): Promise<void> {
  const worker = startWorker(wired.stores, wired.sqs, workerOptions(config));
  try {
    await until(async () => (await messages({ wired, config })) === 0);
  } finally {
    await worker.stop();
  }
}

export async function messages({ wired, config }: { wired: Pick<Wired, 'sqs'>; config: House['config'] }) {
  const { waiting, inFlight } = await queueDepth(wired.sqs, config.SQS_QUEUE_URL, 2000);
  return waiting + inFlight;
}

/** The queue loses everything. */
export async function loseQueue({ sqs, queueUrl }: Pick<House, 'sqs' | 'queueUrl'>): Promise<void> {
  await sqs.send(new PurgeQueueCommand({ QueueUrl: queueUrl }));
}

/** What the gate of a sale is at this moment, to go back to: a Redis that failed over and forgot what came after. */
export async function remember({ redis }: Pick<House, 'redis'>, saleId: string): Promise<() => Promise<void>> {
  const keys = gateKeys(saleId);
  const copies = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return async () => {
    await redis.del(...keys);
    for (const [n, key] of keys.entries()) {
      const copy = copies[n];
      if (copy) await redis.restore(key, 0, copy);
    }
  };
}

/** Lets time pass for a hold: since when it is held, and since when it is marked. */
export async function age({ redis }: Pick<House, 'redis'>, hold: Hold, ms: number): Promise<void> {
  const [, , holds, unqueued] = gateKeys(hold.saleId);
  await redis.hset(holds, hold.userId, formatHold({ ...hold, reservedAt: hold.reservedAt - ms }));
  await redis.zadd(unqueued, 'XX', hold.reservedAt - ms, hold.userId);
}

export async function marked({ redis }: Pick<House, 'redis'>, saleId: string): Promise<string[]> {
  return redis.zrange(gateKeys(saleId)[3], '0', '-1');
}

/** @returns the ids of winners whom the ledger refused, which only a gate that lost something excuses */
export async function rejected({ db }: Pick<House, 'db'>): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select reservation_id as id from sale_orders where status = 'REJECTED'`,
  );
  return rows.map(({ id }) => id);
}

/** Everything agrees, with no grace for anything: fails with the names of the checks that do not hold. */
export async function expectSettled({ databaseUrl, redisUrl }: Pick<House, 'databaseUrl' | 'redisUrl'>) {
  const report = await runAudit({ databaseUrl, redisUrl, graceMs: 0 }, () => undefined);
  expect(report.checks.filter(({ broken }) => broken > 0)).toEqual([]);
  expect(report.unjudged).toEqual([]);
  expect(report.verdict).toBe('holds');
}

export async function pay({ pool }: Pick<House, 'pool'>, hold: Hold): Promise<void> {
  const { outcome } = await applyEvent(pool, event(hold, 'payment.succeeded'));
  expect(outcome).toBe('paid');
}

/** An order without its hold: one that the gate has forgotten. */
export async function recordOnly({ pool }: Pick<House, 'pool'>, hold: Hold): Promise<void> {
  expect((await record(pool, [hold])).get(hold.reservationId)).toBe('PENDING_PAYMENT');
}

export async function cancel({ stores }: Pick<House, 'stores'>, hold: Hold): Promise<void> {
  expect(await cancelReservation(stores, hold)).toMatchObject({ status: 'CANCELLED' });
}

/** Brings every marked hold into the queue and the queue into the ledger, as time would. */
export async function resendMarked(house: House, saleId: string): Promise<void> {
  for (const userId of await marked(house, saleId)) {
    await house.redis.zadd(gateKeys(saleId)[3], 'XX', 0, userId);
  }
  await keep(house);
  await drain(house);
}

export async function saleOf({ pool }: Pick<House, 'pool'>, saleId: string) {
  const sale = await getSale(pool, saleId);
  if (!sale) throw new Error(`no sale ${saleId}`);
  return sale;
}

/** The same object but for some of its methods. */
export function but<T extends object>(real: T, own: Partial<T>): T {
  return new Proxy(real, {
    get: (_, name): unknown => {
      if (name in own) return own[name as keyof T];
      const value: unknown = Reflect.get(real, name);
      return typeof value === 'function' ? (value.bind(real) as unknown) : value; // private members need the real one
    },
  });
}

/** The same house, whose gate differs in some calls. */
export function withGate(house: House, own: Partial<House['gate']>): House {
  const stores = { ...house.stores, gate: but(house.gate, own) };
  return { ...house, stores, gate: stores.gate, wired: { ...house.wired, stores } };
}

/** Keepers as processes of their own on one set of stores: who holds what, what each has logged, orders that are due. */
import { expect } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { record } from '../../src/ledger/orders.ts';
import { putSale } from '../../src/operations/sales.ts';
import { openHouse, until, win, type House } from '../ledger/house.ts';
import { start, type Running, type Said } from '../repair/process.ts';

export const TTL_MS = 2000;
/** For a machine that is busy: nothing here is a promise about time. */
export const PATIENCE_MS = 60_000;

const SHORT = {
  NODE_ENV: 'test',
  LOG_LEVEL: 'info',
  LEASE_TTL_MS: String(TTL_MS),
  GATE_TIMEOUT_MS: '320',
  KEEPER_INTERVAL_MS: '100',
  RECONCILE_INTERVAL_MS: '1000',
  REBUILD_DRAIN_MS: '300',
  QUEUE_WAIT_SECONDS: '1',
};

/** For the test's own calls, which are not what is tested. */
const PATIENT = { NODE_ENV: 'test', LOG_LEVEL: 'info', GATE_TIMEOUT_MS: '1900', QUEUE_WAIT_SECONDS: '1' };

export const openStores = () => openHouse({ env: PATIENT });

/** A keeper process. It is at work once it holds something: see `until`. */
export function keep({ settings }: House, but: Record<string, string> = {}): Running {
  return start(['keep'], { ...settings, ...SHORT, ...but });
}

/** Which process holds each leased shard, by its id. */
export async function leases({ redis }: House): Promise<Map<number, number>> {
  const keys = await redis.keys('lease:shard:*');
  if (keys.length === 0) return new Map();
  const owners = await redis.mget(keys);
  return new Map(
    keys.flatMap((key, n) => {
      const pid = owners[n]?.split(':').at(-2);
      return pid === undefined ? [] : [[Number(key.slice('lease:shard:'.length)), Number(pid)] as const];
    }),
  );
}

/** Waits until these processes hold that many shards between them, none more than its share. */
export async function untilShared(house: House, shards: number, ...pids: number[]): Promise<void> {
  const share = Math.ceil(shards / pids.length);
  await until(async () => {
    const owners = [...(await leases(house)).values()];
    const counts = pids.map((pid) => owners.filter((owner) => owner === pid).length);
    return (
      owners.length === shards && counts.every((count) => count <= share && count >= shards - share * (pids.length - 1))
    );
  }, PATIENCE_MS);
}

/** Sales with an open gate. @returns their ids */
export async function openSales({ stores }: House, count: number, total = 10): Promise<string[]> {
  const now = Date.now();
  const ids = Array.from({ length: count }, (_, n) => `sale-${n}`);
  for (const saleId of ids) {
    await putSale(stores, saleId, {
      ...{ name: 'A sale', total, holdSeconds: 600, maxPerReservation: 5, price: { amount: 500, currency: 'EUR' } },
      startsAt: new Date(now - 60_000).toISOString(),
      endsAt: new Date(now + 3_600_000).toISOString(),
    });
  }
  return ids;
}

let buyers = 0;

/** One order in each sale that nobody paid and whose time is over. */
export async function dueOrders(house: House, sales: string[]): Promise<Hold[]> {
  const holds: Hold[] = [];
  for (const saleId of sales) holds.push(await dueOrder(house, saleId));
  return holds;
}

const LONG_AGO_MS = 700_000;

/** The same in one sale. */
export async function dueOrder(house: House, saleId: string): Promise<Hold> {
  const hold = await overdue(house, saleId);
  await record(house.pool, [hold]);
  return hold;
}

/**
 * A hold whose order is due as soon as it is recorded. As of long ago from the start, not moved back afterwards: a keeper
 * that runs beside it acts on what is due at once.
 */
export async function overdue(house: House, saleId: string): Promise<Hold> {
  const hold = await win(house, saleId, `buyer-${(buyers += 1)}`);
  await house.gate.queued(saleId, hold);
  return { ...hold, reservedAt: hold.reservedAt - LONG_AGO_MS, expiresAt: hold.expiresAt - LONG_AGO_MS };
}

type Handled = { saleId: string; status: string; released: number | null; expiries: number };

/** What became of orders: `released` is when the mark was set, in epoch milliseconds. */
export async function handled({ db }: House, holds: Hold[]): Promise<Handled[]> {
  const { rows } = await db.query<Handled>(
    `select sale_id as "saleId", status, (extract(epoch from gate_released_at) * 1000)::float8 as released,
       (select count(*)::int from ledger_entries e where e.reservation_id = o.reservation_id and kind = 'expiry') as expiries
     from sale_orders o join unnest($1::uuid[]) with ordinality as wanted (reservation_id, n) using (reservation_id) order by n`,
    [holds.map(({ reservationId }) => reservationId)],
  );
  expect(rows).toHaveLength(holds.length);
  return rows;
}

export async function untilHandled(house: House, holds: Hold[]): Promise<Handled[]> {
  const isDone = (order: Handled) => order.status === 'EXPIRED' && order.released !== null;
  await until(async () => (await handled(house, holds)).every(isDone), PATIENCE_MS);
  const orders = await handled(house, holds);
  expect(
    orders.every(({ expiries }) => expiries === 1),
    'each expiry is in the journal once',
  ).toBe(true);
  return orders;
}

/** What a keeper has logged of its sweeps: by shard, how many orders it ended and gave back. */
export function sweeps({ said }: Pick<Running, 'said'>): Map<number, { expired: number; released: number }> {
  const sums = new Map<number, { expired: number; released: number }>();
  for (const { msg, shard, expired, released } of said) {
    if (msg !== 'swept') continue;
    const sum = sums.get(Number(shard)) ?? { expired: 0, released: 0 };
    sum.expired += Number(expired);
    sum.released += Number(released);
    sums.set(Number(shard), sum);
  }
  return sums;
}

/** Lines in which a keeper says that it let leases go. */
export const lettingGo = ({ said }: Pick<Running, 'said'>): Said[] =>
  said.filter(({ msg }) => /^(a lease is|leases are) let go$/.test(msg));

/**
 * The full pass over one sale: gate and ledger compared from both sides, and made to agree.
 *
 * From the gate's side it scans holds, whatever their marks say: no order and old enough, the message is sent again; an
 * order that has ended, the hold is released or forfeited. From the ledger's side it looks for live orders that the gate
 * forgot, and adopts them. A pass that found nothing missing gives back what was forfeited when it began.
 *
 * Both sides are walked by cursor in bounded pages: no script call and no query grows with the sale.
 */
import { crashPoint } from '../crash.ts';
import type { Hold } from '../domain/reservation.ts';
import type { GateFigures } from '../gate/gate.ts';
import { transaction } from '../ledger/db.ts';
import { lockLive, statusOf } from '../ledger/orders.ts';
import { liveHolds } from '../ledger/sales.ts';
import { enqueue } from '../operations/enqueue.ts';
import { finish } from '../operations/finish.ts';
import type { Stores } from '../operations/stores.ts';

export type ReconcileOptions = {
  /** Holds or orders per page. */
  batch: number;
  /** A hold without an order is taken for lost by the queue after this time. */
  lostGraceMs: number;
  /** For one send to the queue. */
  timeoutMs: number;
};

export type Reconciled = {
  holds: number;
  orders: number;
  resent: number;
  released: number;
  forfeited: number;
  adopted: number;
  /** Live orders that the gate lacks still: their buyers have another hold, which must end first. */
  blocked: number;
  settled: number;
};

/** The gate was lost, or another keeper took over, in the middle of a pass: the rest is the next pass's work. */
export class PassAborted extends Error {}

/** When each hold was last sent again, so that it is sent once per grace: ids of holds that are gone fall out. */
export type ResentAt = Map<string, number>;

/**
 * @param resentAt this keeper's memory of what it has sent again, kept between passes
 * @throws {PassAborted | GateUnavailable | LedgerUnavailable}
 */
export async function reconcile(
  stores: Stores,
  saleId: string,
  options: ReconcileOptions,
  resentAt: ResentAt = new Map(),
  token = '',
): Promise<Reconciled> {
  const begun = await stores.gate.figures(saleId);
  if (!begun) throw new PassAborted(`sale ${saleId}: the gate is not loaded`);
  const done = { holds: 0, orders: 0, resent: 0, released: 0, forfeited: 0, adopted: 0, blocked: 0, settled: 0 };
  await walkHolds(stores, begun, saleId, options, resentAt, token, done);
  await walkOrders(stores, saleId, options, token, done);
  if (done.adopted === 0 && done.blocked === 0 && begun.forfeited > 0) {
    const answer = await stores.gate.settle(saleId, begun, token);
    if (typeof answer === 'object') done.settled = answer.settled;
  }
  return done;
}

async function walkHolds(
  stores: Stores,
  begun: GateFigures,
  saleId: string,
  options: ReconcileOptions,
  resentAt: ResentAt,
  token: string,
  done: Reconciled,
): Promise<void> {
  const lostBefore = begun.now - options.lostGraceMs;
  const seen = new Set<string>();
  for (let cursor = '0'; ;) {
    const page = await stores.gate.scanHolds(saleId, cursor, options.batch);
    cursor = page.cursor;
    done.holds += page.holds.length;
    const status = await statusOf(
      stores.pool,
      page.holds.map(({ reservationId }) => reservationId),
    );
    const lost: Hold[] = [];
    const ended = page.holds.flatMap((hold) => {
      const found = status.get(hold.reservationId);
      if (found !== undefined) return [{ ...hold, status: found }];
      seen.add(hold.reservationId);
      const sentAt = Math.max(hold.reservedAt, resentAt.get(hold.reservationId) ?? 0);
      if (sentAt <= lostBefore) lost.push(hold);
      return [];
    });
    const { released, forfeited } = await finish(stores, ended, token);
    done.released += released;
    done.forfeited += forfeited;
    done.resent += await sendAgain(stores, lost, options.timeoutMs);
    for (const { reservationId } of lost) resentAt.set(reservationId, begun.now);
    if (cursor === '0') break;
  }
  for (const id of resentAt.keys()) if (!seen.has(id)) resentAt.delete(id);
}

/** @returns how many the queue took; the others are tried again after the grace */
async function sendAgain(stores: Stores, lost: Hold[], timeoutMs: number): Promise<number> {
  const deadline = performance.now() + timeoutMs;
  const results = await Promise.allSettled(lost.map((hold) => enqueue(stores, hold, deadline)));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length > 0)
    stores.log.warn({ err: failures[0], failed: failures.length }, 'holds could not be sent again');
  return lost.length - failures.length;
}

async function walkOrders(
  stores: Stores,
  saleId: string,
  options: ReconcileOptions,
  token: string,
  done: Reconciled,
): Promise<void> {
  for (let after = ''; ;) {
    const orders = await liveHolds(stores.pool, saleId, after, options.batch);
    if (orders.length === 0) return;
    after = orders.at(-1)?.userId ?? '';
    done.orders += orders.length;
    const held = await stores.gate.holdsOf(
      saleId,
      orders.map(({ userId }) => userId),
    );
    const missing = orders.filter((order, n) => held[n]?.reservationId !== order.reservationId);
    if (missing.length > 0) await adopt(stores, saleId, missing, token, done);
  }
}

/**
 * Adopts while the orders' rows are held and seen to be live: an order that expires a moment later waits for us, and its
 * release comes after the adoption. Without that the gate would get a hold of an order that has ended.
 */
async function adopt(stores: Stores, saleId: string, missing: Hold[], token: string, done: Reconciled): Promise<void> {
  await transaction(stores.pool, async (client) => {
    const live = await lockLive(
      client,
      missing.map(({ reservationId }) => reservationId),
    );
    if (live.length === 0) return;
    const answers = await stores.gate.adopt(saleId, live, token);
    if (typeof answers === 'string') throw new PassAborted(`sale ${saleId}: adopting found the gate ${answers}`);
    crashPoint('adopted');
    done.adopted += answers.filter((answer) => answer === 'adopted').length;
    done.blocked += answers.filter((answer) => answer === 'other').length;
  });
}

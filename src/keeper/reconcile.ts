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
import { fenced } from '../domain/outcomes.ts';
import type { Hold } from '../domain/reservation.ts';
import type { GateFigures } from '../gate/gate.ts';
import { transaction } from '../ledger/db.ts';
import { fence } from '../ledger/fences.ts';
import { lockLive, statusOf } from '../ledger/orders.ts';
import { liveHolds } from '../ledger/sales.ts';
import { enqueue } from '../operations/enqueue.ts';
import { finish, type Ended } from '../operations/finish.ts';
import { noToken, type Stores, type TokenOf } from '../operations/stores.ts';

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

/** What one pass works with. `tokenOf` is asked anew for every step: a lease may end in the middle of a pass. */
export type Pass = {
  stores: Stores;
  saleId: string;
  options: ReconcileOptions;
  /** This keeper's memory of what it has sent again, kept between passes. */
  resentAt: ResentAt;
  tokenOf: TokenOf;
};

/** The whole pass at once. @throws {PassAborted | StaleToken | GateUnavailable | LedgerUnavailable} */
export async function reconcile(
  stores: Stores,
  saleId: string,
  options: ReconcileOptions,
  { resentAt, tokenOf }: Pick<Pass, 'resentAt' | 'tokenOf'> = { resentAt: new Map(), tokenOf: noToken },
): Promise<Reconciled> {
  const steps = reconcileSteps({ stores, saleId, options, resentAt, tokenOf });
  for (;;) {
    const step = await steps.next();
    if (step.done) return step.value;
  }
}

/** The pass in steps of one page each, so that a keeper can do what is more urgent in between. */
export async function* reconcileSteps(pass: Pass): AsyncGenerator<undefined, Reconciled> {
  const { stores, saleId, tokenOf } = pass;
  const begun = await stores.gate.figures(saleId);
  if (!begun) throw new PassAborted(`sale ${saleId}: the gate is not loaded`);
  const done = { holds: 0, orders: 0, resent: 0, released: 0, forfeited: 0, adopted: 0, blocked: 0, settled: 0 };
  yield* walkHolds(pass, begun, done);
  yield* walkOrders(pass, done);
  if (done.adopted === 0 && done.blocked === 0 && begun.forfeited > 0) {
    const answer = fenced(await stores.gate.settle(saleId, begun, tokenOf(saleId)), saleId);
    if (typeof answer === 'object') done.settled = answer.settled;
  }
  return done;
}

async function* walkHolds(pass: Pass, begun: GateFigures, done: Reconciled): AsyncGenerator<undefined, void> {
  const { stores, saleId, options, resentAt } = pass;
  const lostBefore = begun.now - options.lostGraceMs;
  const withoutOrder = new Set<string>();
  for (let cursor = '0'; ;) {
    const page = await stores.gate.scanHolds(saleId, cursor, options.batch);
    cursor = page.cursor;
    done.holds += page.holds.length;
    const ids = page.holds.map(({ reservationId }) => reservationId);
    const status = await statusOf(stores.pool, ids);
    const ended: Ended[] = [];
    const lost: Hold[] = [];
    for (const hold of page.holds) {
      const found = status.get(hold.reservationId);
      if (found !== undefined) {
        ended.push({ ...hold, status: found });
        continue;
      }
      withoutOrder.add(hold.reservationId);
      const sentAt = Math.max(hold.reservedAt, resentAt.get(hold.reservationId) ?? 0);
      if (sentAt <= lostBefore) lost.push(hold);
    }
    const { released, forfeited } = await finish(stores, ended, pass.tokenOf);
    done.released += released;
    done.forfeited += forfeited;
    done.resent += await sendAgain(stores, lost, options.timeoutMs);
    for (const { reservationId } of lost) resentAt.set(reservationId, begun.now);
    if (cursor === '0') break;
    yield;
  }
  for (const id of resentAt.keys()) if (!withoutOrder.has(id)) resentAt.delete(id);
}

/** @returns how many the queue took; the others are tried again after the grace */
async function sendAgain(stores: Stores, lost: Hold[], timeoutMs: number): Promise<number> {
  const deadline = performance.now() + timeoutMs;
  const results = await Promise.allSettled(lost.map((hold) => enqueue(stores, hold, deadline)));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length > 0) {
    stores.log.warn({ err: failures[0], failed: failures.length }, 'holds could not be sent again');
  }
  return lost.length - failures.length;
}

async function* walkOrders(pass: Pass, done: Reconciled): AsyncGenerator<undefined, void> {
  const { stores, saleId, options } = pass;
  for (let after = ''; ;) {
    const orders = await liveHolds(stores.pool, saleId, after, options.batch);
    if (orders.length === 0) return;
    after = orders.at(-1)?.userId ?? '';
    done.orders += orders.length;
    const users = orders.map(({ userId }) => userId);
    const held = await stores.gate.holdsOf(saleId, users);
    const missing = orders.filter((order, n) => held[n]?.reservationId !== order.reservationId);
    if (missing.length > 0) await adopt(pass, missing, done);
    yield;
  }
}

/**
 * Adopts while the orders' rows are held and seen to be live: an order that expires a moment later waits for us, and its
 * release comes after the adoption. Without that the gate would get a hold of an order that has ended.
 */
async function adopt({ stores, saleId, tokenOf }: Pass, missing: Hold[], done: Reconciled): Promise<void> {
  const token = tokenOf(saleId);
  const ids = missing.map(({ reservationId }) => reservationId);
  const answers = await transaction(stores.pool, async (client) => {
    await fence(client, saleId, token);
    const live = await lockLive(client, ids);
    if (live.length === 0) return [];
    const adopted = fenced(await stores.gate.adopt(saleId, live, token), saleId);
    if (typeof adopted === 'string') throw new PassAborted(`sale ${saleId}: adopting found the gate ${adopted}`);
    crashPoint('adopted');
    return adopted;
  });
  done.adopted += answers.filter((answer) => answer === 'adopted').length;
  done.blocked += answers.filter((answer) => answer === 'other').length;
}

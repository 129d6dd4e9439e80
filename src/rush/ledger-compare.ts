/** Compares what buyers were told, and what they paid, with what the ledger has. Pure: no I/O. */
import type { Told } from './answers.ts';
import type { Heard } from './crowd.ts';
import type { Order, Payment, SaleView } from './ledger-read.ts';

export type Evidence = {
  heard: Heard[];
  /** Answers that the API never promised, and what winners could not do, in words. */
  unexpected: string[];
  troubles: string[];
  /** All of the sale's orders, by reservation id. */
  orders: Map<string, Order>;
  /** Reservation ids of orders that were there before the rush: they count as units, and for nothing else. */
  before: Set<string>;
  sale: SaleView;
  payments: Payment[];
  /** The largest quantity that anyone asked for. */
  quantity: number;
};

/** A named comparison: how many cases it looked at, and each one that does not hold, in words. */
export type Check = { name: string; claim: string; examined: number; failures: string[] };

/** Buyers' and servers' clocks may differ: what is closer than this is not judged by time. */
export const CLOCK_MARGIN_MS = 1000;

/** What is still on its way when the rush ends; a failure of any other check stays one, however long one waits. */
const mendedByTime = new Set(['told_has_order', 'units', 'all_final', 'money', 'paid_in_time']);

export const isSettled = (checks: Check[]): boolean =>
  checks.every(({ name, failures }) => failures.length === 0 || !mendedByTime.has(name));

const isLive = ({ status }: Order) => status === 'PENDING_PAYMENT' || status === 'PAID';
const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);

export function compare(evidence: Evidence): Check[] {
  const every: [name: string, claim: string, check: (evidence: Evidence) => Omit<Check, 'name' | 'claim'>][] = [
    ['answers', 'every answer is one that the API promises, and somebody was served', answersAreKnown],
    ['told_has_order', 'everyone told ok or dup has that order, as it was told', toldHasOrder],
    ['order_was_told', 'nobody has an order who was not told so (every reply lost or 503 excepted)', orderWasTold],
    ['holder_was_told', 'nobody who held a reservation was refused instead of told so', holderWasToldSo],
    ['one_at_a_time', 'nobody was told two reservations unless the first had ended', oneAtATime],
    ['no_winner_refused', 'nobody told ok was refused by the ledger', noWinnerRefused],
    ['sold_out_was_true', 'nobody was told sold out before all units had been taken', soldOutWasTrue],
    ['units', 'live quantities + units left = total, at the gate and in the ledger', unitsAddUp],
    ['all_final', 'no hold is left open: each order is paid or has ended', allFinal],
    ['money', 'each paid order has its money, and all other money went back', moneyAddsUp],
    ['paid_in_time', 'a payment reported before its hold expired is a paid order', paidInTime],
    [
      'winners_acted',
      'every winner could pay, or see the hold expire',
      ({ troubles, heard }) => ({
        examined: sum(heard.map(({ told }) => told.length)),
        failures: troubles,
      }),
    ],
  ];
  return every.map(([name, claim, check]) => ({ name, claim, ...check(evidence) }));
}

/** Orders of buyers who never had a reply that names them: the stated exception, counted. */
export function ordersUnheardOf(evidence: Evidence): Order[] {
  const known = new Set(evidence.heard.flatMap(({ told }) => told.map(({ reservationId }) => reservationId)));
  return newOrders(evidence).filter(({ reservationId }) => !known.has(reservationId));
}

function newOrders({ orders, before }: Evidence): Order[] {
  return [...orders.values()].filter(({ reservationId }) => !before.has(reservationId));
}

function answersAreKnown({ heard, unexpected }: Evidence) {
  const decided = sum(heard.map(({ told, refusals }) => told.length + refusals.length));
  const nobody = decided === 0 ? ['nobody was told anything but failures: nothing was tried'] : [];
  return { examined: decided + unexpected.length, failures: [...nobody, ...unexpected] };
}

function toldHasOrder({ heard, orders }: Evidence) {
  const told = heard.flatMap(({ told }) => told);
  const failures = told.flatMap((claim) => {
    const order = orders.get(claim.reservationId);
    if (!order) return [`${claim.userId} was told reservation ${claim.reservationId}, which the ledger does not have`];
    const members = ['userId', 'qty', 'amount', 'currency', 'reservedAt', 'expiresAt'] as const;
    const other = members.filter((member) => claim[member] !== order[member]);
    return other.map(
      (member) => `${claim.reservationId}: told ${member} ${claim[member]}, the ledger has ${order[member]}`,
    );
  });
  return { examined: told.length, failures };
}

function orderWasTold(evidence: Evidence) {
  const byUser = new Map(evidence.heard.map((heard) => [heard.userId, heard]));
  const failures = ordersUnheardOf(evidence)
    .filter(({ userId }) => byUser.get(userId)?.unknown === 0) // not one of ours, or with a reply that was lost or 503
    .map(({ userId, reservationId, status }) => {
      return `${userId} has order ${reservationId} (${status}) but had every reply, and none names it`;
    });
  return { examined: newOrders(evidence).length, failures };
}

/** Whatever else is the case, a holder who presses again is told of the hold. */
function holderWasToldSo(evidence: Evidence) {
  const byUser = new Map(evidence.heard.map((heard) => [heard.userId, heard]));
  const holders = newOrders(evidence).filter(({ status }) => status === 'PAID' || status === 'EXPIRED');
  const failures = holders.flatMap(({ userId, reservationId, status, reservedAt, expiresAt }) => {
    const until = status === 'PAID' ? Infinity : expiresAt - CLOCK_MARGIN_MS;
    const refusals = byUser.get(userId)?.refusals ?? [];
    const wrong = refusals.filter(({ sentAt, heardAt }) => sentAt > reservedAt + CLOCK_MARGIN_MS && heardAt < until);
    return wrong.slice(0, 1).map(({ kind }) => `${userId} was told ${kind} while holding ${reservationId} (${status})`);
  });
  return { examined: holders.length, failures };
}

function oneAtATime({ heard, orders }: Evidence) {
  const repeated = heard.filter(({ told }) => told.length > 1);
  const failures = repeated.flatMap(({ userId, told }) => {
    const inOrder = told.toSorted((a, b) => a.reservedAt - b.reservedAt);
    return inOrder.slice(1).flatMap((second, n) => {
      const first = inOrder[n] as Told;
      const order = orders.get(first.reservationId);
      const ended =
        order !== undefined &&
        !isLive(order) &&
        (order.status !== 'EXPIRED' || first.expiresAt <= second.reservedAt + CLOCK_MARGIN_MS);
      const status = order?.status ?? 'not in the ledger';
      const ids = `${second.reservationId} while ${first.reservationId} (now ${status}) had not ended`;
      return ended ? [] : [`${userId} was told ${ids}`];
    });
  });
  return { examined: heard.filter(({ told }) => told.length > 0).length, failures };
}

function noWinnerRefused({ heard, orders }: Evidence) {
  const told = heard.flatMap(({ told }) => told);
  const failures = told.flatMap(({ userId, reservationId }) => {
    const order = orders.get(reservationId);
    if (order?.status !== 'REJECTED') return [];
    return [`${userId} was told ${reservationId}, then refused: ${order.reason ?? 'no reason given'}`];
  });
  return { examined: told.length, failures };
}

/** By the first refusal all units must have been taken (all but a last few that are too few for one who asks for many). */
function soldOutWasTrue({ heard, orders, sale, quantity }: Evidence) {
  const refusals = heard.flatMap(({ refusals }) => refusals.filter(({ kind }) => kind === 'sold_out'));
  const first = refusals.reduce((least, { heardAt }) => Math.min(least, heardAt), Infinity);
  const takenByThen = sum(
    [...orders.values()].map(({ qty, reservedAt }) => (reservedAt < first + CLOCK_MARGIN_MS ? qty : 0)),
  );
  const fewest = sale.ledger.total - (quantity - 1);
  const failures =
    refusals.length > 0 && takenByThen < fewest
      ? [`the first sold out came when only ${takenByThen} of ${sale.ledger.total} units had been taken`]
      : [];
  return { examined: refusals.length, failures };
}

function unitsAddUp({ sale: { gate, ledger }, orders }: Evidence) {
  const live = sum([...orders.values()].filter(isLive).map(({ qty }) => qty));
  const failures: string[] = [];
  if (live > ledger.total) failures.push(`oversold: ${live} units are owned, the sale has ${ledger.total}`);
  if (live !== ledger.sold) failures.push(`the orders own ${live} units, the ledger counts ${ledger.sold} as sold`);
  if (gate === null) {
    failures.push('the gate is not loaded, so nobody can say how many units are left');
  } else {
    const { stock, held, forfeited, total } = gate;
    const parts = `${stock} left + ${forfeited} forfeited`;
    if (live + stock + forfeited !== ledger.total) {
      failures.push(`${live} owned + ${parts} at the gate = ${live + stock + forfeited}, not ${ledger.total}`);
    }
    if (stock + held + forfeited !== total || total !== ledger.total) {
      failures.push(`the gate has ${parts} + ${held} held of its ${total}, the ledger a total of ${ledger.total}`);
    }
  }
  return { examined: ledger.total, failures };
}

function allFinal(evidence: Evidence) {
  const orders = newOrders(evidence);
  const failures = orders
    .filter(({ status }) => status === 'PENDING_PAYMENT')
    .map(
      ({ reservationId, expiresAt }) =>
        `${reservationId} is still PENDING_PAYMENT (expires ${new Date(expiresAt).toISOString()}): is the keeper running?`,
    );
  return { examined: orders.length, failures };
}

function moneyAddsUp(evidence: Evidence) {
  const { heard, orders, payments, before } = evidence;
  const told = heard.flatMap(({ told }) => told.map(({ reservationId }) => reservationId));
  const ids = new Set([...told, ...newOrders(evidence).map(({ reservationId }) => reservationId)]);
  const kept = new Map<string, number>();
  for (const { reservationId, captured, refunded } of payments) {
    kept.set(reservationId, (kept.get(reservationId) ?? 0) + captured - refunded);
  }
  const failures = [...ids].flatMap((id) => {
    if (before.has(id)) return [];
    const order = orders.get(id);
    const due = order?.status === 'PAID' ? order.amount : 0;
    const has = kept.get(id) ?? 0;
    if (has === due) return [];
    return [`${id} is ${order?.status ?? 'not in the ledger'}: ${due} is due, the provider keeps ${has}`];
  });
  const wrongCurrency = payments.flatMap(({ paymentId, reservationId, currency }) => {
    const order = ids.has(reservationId) ? orders.get(reservationId) : undefined;
    const isWrong = order?.status === 'PAID' && order.currency !== currency;
    return isWrong ? [`payment ${paymentId} is in ${currency}, its order in ${order.currency}`] : [];
  });
  return { examined: ids.size, failures: [...failures, ...wrongCurrency] };
}

/** A payment with the right amount whose event the API accepted in time leaves nothing to refund. */
function paidInTime({ payments, orders, before }: Evidence) {
  const inTime = payments.flatMap(({ paymentId, reservationId, captured, deliveredAt }) => {
    const order = orders.get(reservationId);
    if (!order || before.has(reservationId) || captured === 0 || deliveredAt === null) return [];
    const spare = order.expiresAt - deliveredAt;
    return spare > CLOCK_MARGIN_MS ? [{ paymentId, order, spare }] : [];
  });
  const failures = inTime
    .filter(({ order }) => order.status !== 'PAID')
    .map(
      ({ paymentId, order: { reservationId, status }, spare }) =>
        `${paymentId} was accepted ${spare} ms before ${reservationId} expired, but the order is ${status}`,
    );
  return { examined: inTime.length, failures };
}

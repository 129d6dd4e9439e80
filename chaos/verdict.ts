/**
 * The verdict: what the world beside the system knows, held against what the stores have at the end. Every check is
 * named and says how much it looked at. Pure: no I/O.
 */
import type { Payment } from '../src/provider/book.ts';
import type { GateRow, Ledger, Order } from './ledger.ts';
import type { Model, ToldOften } from './model.ts';
import { LOSES_GATE } from './script.ts';
import type { Struck } from './faults.ts';
import type { Settled } from './settle.ts';
import type { Sighting } from './watch.ts';

/** Times in epoch milliseconds. */
export type Evidence = {
  model: Model;
  struck: Struck[];
  ledger: Ledger;
  gate: GateRow[];
  book: Payment[];
  settled: Settled;
  /** Reservations of those who bought after the faults, one for each API. */
  lastBuyers: string[];
  audit: { exitCode: number; checks: number; findings: string[] };
  watch: { looks: number; notConserved: Sighting[]; cameBack: Sighting[] };
  /** Processes that ended though nobody had told them to. */
  ownEnds: string[];
  /** Errors of the driver itself. */
  failures: string[];
};

/** `excused` are findings that the design documents, with the fault that explains each. */
export type Check = { name: string; says: string; looked: number; findings: string[]; excused: string[] };

/** How long after a fault its consequences may last. Repairs begin at once, but a keeper may be frozen for 7 s. */
const AFTERMATH_MS = 20_000;
/** How long a message may wait in the queue while the ledger is down again and again, and workers are starved as they start. */
const QUEUED_MS = 40_000;
/** Two stores and this process need not agree on a moment to the millisecond. */
const MARGIN_MS = 3000;
const APIS = 2;

export function judge(evidence: Evidence): Check[] {
  return [
    ...[settles(evidence), audit(evidence), sells(evidence), ownEnds(evidence), answers(evidence)],
    ...[toldHasOrder(evidence), orderAsTold(evidence), orderWasAsked(evidence), refused(evidence)],
    ...[givenUpStays(evidence), shownStays(evidence), turnedAway(evidence)],
    ...[moneySettled(evidence), moneyAddsUp(evidence), rightMoney(evidence), paidInTime(evidence)],
    ...[units(evidence), conserved(evidence), cameBack(evidence)],
  ];
}

/** Green only if no check found anything, and there was something to look at. */
export function holds(checks: Check[]): boolean {
  return checks.every(({ findings }) => findings.length === 0) && checks.every(({ looked }) => looked > 0);
}

function check(name: string, says: string, looked: number, findings: string[], excused: string[] = []): Check {
  return { name, says, looked, findings, excused };
}

const byId = ({ ledger }: Evidence) => new Map(ledger.orders.map((order) => [order.id, order]));

function settles({ settled, failures }: Evidence): Check {
  return check('settles', 'after the faults nothing is left to do, in bounded time', 1, [...settled.left, ...failures]);
}

function audit({ audit: { exitCode, checks, findings } }: Evidence): Check {
  const found = exitCode === 0 ? [] : [`the audit's exit code is ${exitCode}`, ...findings];
  return check('audit_holds', 'the audit exits 0', checks, found);
}

function sells(evidence: Evidence): Check {
  const orders = byId(evidence);
  const unpaid = evidence.lastBuyers.filter((id) => orders.get(id)?.status !== 'PAID');
  const missing = evidence.lastBuyers.length < APIS ? [`only ${evidence.lastBuyers.length} of ${APIS} APIs sold`] : [];
  const found = [
    ...missing,
    ...unpaid.map((id) => `${id} was paid for, and is ${orders.get(id)?.status ?? 'no order'}`),
  ];
  return check('sells_again', 'after the faults each API sells, and what is paid for is PAID', APIS, found);
}

function ownEnds({ ownEnds: ends }: Evidence): Check {
  return check('no_process_gives_up', 'no process that had started ends by itself', 6, ends);
}

function answers({ model }: Evidence): Check {
  const looked = model.answers.flatMap((counts) => [...counts.values()]).reduce((sum, count) => sum + count, 0);
  return check(
    'answers_are_known',
    'every answer is one that the contract names, and tells the same',
    looked,
    model.wrongAnswers,
  );
}

function toldHasOrder(evidence: Evidence): Check {
  const orders = byId(evidence);
  const findings: string[] = [];
  const excused: string[] = [];
  for (const told of evidence.model.told.values()) {
    if (orders.has(told.reservationId)) continue;
    const what = `${told.userId} was told of ${told.reservationId} at ${clock(told.firstAt)}, and there is no such order`;
    const why = lostTwice(evidence.struck, told);
    if (why === undefined) findings.push(what);
    else excused.push(`${what}: ${why}`);
  }
  return check('told_has_order', 'whoever was told ok has an order', evidence.model.told.size, findings, excused);
}

/**
 * The one loss that nobody can repair: gate and queue forgot the same winner before the ledger had heard of it.
 * @returns when each of them did; undefined when that was not so
 */
function lostTwice(struck: Struck[], { reservedAt, lastAt }: ToldOften): string | undefined {
  const sinceThen = (at: number) => at > reservedAt - 100;
  const queue = struck
    .filter(({ kind, startedAt: at }) => kind === 'queue-empty' && sinceThen(at) && at < lastAt + QUEUED_MS)
    .at(-1)?.startedAt;
  if (queue === undefined) return undefined;
  // Had the gate known it for longer than that, a keeper would have sent it to the queue again.
  const gate = struck.find(
    ({ forgot }) =>
      forgot && sinceThen(forgot.at) && forgot.at < queue + AFTERMATH_MS && forgot.since < reservedAt + 100,
  )?.forgot?.at;
  if (gate === undefined) return undefined;
  return `won at ${clock(reservedAt)}, the queue forgot at ${clock(queue)}, the gate at ${clock(gate)}`;
}

function orderAsTold(evidence: Evidence): Check {
  const findings: string[] = [];
  const names = ['saleId', 'userId', 'qty', 'amount', 'currency', 'reservedAt', 'expiresAt'] as const;
  let looked = 0;
  for (const order of evidence.ledger.orders) {
    const told = evidence.model.told.get(order.id);
    if (!told) continue;
    looked += 1;
    for (const name of names) {
      if (order[name] !== told[name]) findings.push(`${order.id}: told ${name} ${told[name]}, recorded ${order[name]}`);
    }
  }
  return check('order_as_told', 'an order is what the buyer was told', looked, findings);
}

function orderWasAsked({ ledger, model }: Evidence): Check {
  const findings = ledger.orders.filter((order) => !model.hasAsked(order)).map(describe);
  return check('order_was_asked', 'an order is of a buyer who asked for that many', ledger.orders.length, findings);
}

function refused({ ledger, struck }: Evidence): Check {
  const forgotAt = Math.min(...struck.map(({ forgot }) => forgot?.at ?? Infinity));
  const rejected = ledger.orders.filter(({ status }) => status === 'REJECTED');
  const findings = rejected.filter(({ recordedAt }) => recordedAt < forgotAt).map(describe);
  const excused = rejected.filter(({ recordedAt }) => recordedAt >= forgotAt).map(describe);
  const says = 'no winner is refused as long as the gate has forgotten nothing';
  return check('no_winner_refused', says, ledger.orders.length, findings, excused);
}

function givenUpStays(evidence: Evidence): Check {
  const orders = byId(evidence);
  const findings: string[] = [];
  for (const [id, at] of evidence.model.givenUp) {
    const status = orders.get(id)?.status ?? 'no order';
    if (['CANCELLED', 'EXPIRED', 'REJECTED'].includes(status)) continue;
    findings.push(`${id} was given up at ${clock(at)}, and is ${status}`);
  }
  return check(
    'given_up_stays',
    'a reservation that the buyer gave up is not sold to that buyer',
    evidence.model.givenUp.size,
    findings,
  );
}

function shownStays(evidence: Evidence): Check {
  const orders = byId(evidence);
  const findings: string[] = [];
  for (const [id, shown] of evidence.model.shown) {
    const status = orders.get(id)?.status ?? 'no order';
    if (status !== shown) findings.push(`${id} was shown as ${shown}, and is ${status}`);
  }
  return check(
    'shown_stays',
    'a final status that a buyer was shown is the status',
    evidence.model.shown.size,
    findings,
  );
}

function turnedAway(evidence: Evidence): Check {
  const orders = byId(evidence);
  const findings: string[] = [];
  const excused: string[] = [];
  for (const { reservationId, askedAt, answeredAt } of evidence.model.turnedAway) {
    const order = orders.get(reservationId);
    if (!order || order.status === 'REJECTED') continue;
    const gaveUpAt = evidence.model.askedToGiveUp.get(reservationId) ?? Infinity;
    if (order.status === 'CANCELLED' && gaveUpAt < answeredAt + 500) continue;
    const what = `${order.userId} holds ${reservationId}, and was told sold_out at ${clock(askedAt)}`;
    const gateForgot = evidence.struck.some(
      ({ forgot }) => forgot && forgot.at > order.reservedAt - 100 && forgot.at < answeredAt,
    );
    (gateForgot ? excused : findings).push(what);
  }
  const says = 'who holds is not told sold_out, unless the gate has forgotten the hold';
  return check('holder_not_turned_away', says, evidence.model.told.size, findings, excused);
}

function moneySettled({ book, ledger }: Evidence): Check {
  const status = new Map(ledger.payments.map((payment) => [payment.id, payment.status]));
  const captured = book.filter((payment) => payment.captured > 0);
  const findings = captured.flatMap(({ paymentId, captured: taken, refunded }) => {
    const kept = status.get(paymentId) === 'APPLIED' ? taken : 0;
    return kept + refunded === taken
      ? []
      : [`${paymentId}: ${taken} captured, ${refunded} refunded, ${kept} for an order`];
  });
  const says = 'money that was captured pays an order, or was given back whole, once, at the provider';
  return check('money_settled', says, captured.length, findings);
}

function moneyAddsUp({ book, ledger }: Evidence): Check {
  const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0);
  const paid = ledger.orders.filter(({ status }) => status === 'PAID');
  const [taken, refunded] = [sum(book.map(({ captured }) => captured)), sum(book.map((payment) => payment.refunded))];
  const worth = sum(paid.map(({ amount }) => amount));
  const found = taken === worth + refunded ? [] : [`${taken} taken, ${worth} in PAID orders, ${refunded} refunded`];
  return check('money_adds_up', 'money taken = money of PAID orders + refunds', paid.length, found);
}

function rightMoney(evidence: Evidence): Check {
  const orders = byId(evidence);
  const applied = evidence.ledger.payments.filter(({ status }) => status === 'APPLIED');
  const findings = applied.flatMap(({ id }) => {
    const made = evidence.model.payments.get(id);
    const order = made && orders.get(made.reservationId);
    const right = made?.purpose === 'right' || made?.purpose === 'second';
    if (right && order?.status === 'PAID' && order.amount === made.amount && order.currency === made.currency)
      return [];
    return [`payment ${id} (${made?.purpose ?? 'nobody made it'}) counts for ${order ? describe(order) : 'no order'}`];
  });
  return check('right_money', 'only money of the right amount, meant for it, pays an order', applied.length, findings);
}

/** Whoever paid the right amount in good time, and did not give up, has what was bought. */
function paidInTime(evidence: Evidence): Check {
  const orders = byId(evidence);
  const findings: string[] = [];
  let looked = 0;
  for (const { id, receivedAt } of evidence.ledger.payments) {
    const made = evidence.model.payments.get(id);
    const order = made?.purpose === 'right' ? orders.get(made.reservationId) : undefined;
    if (!order || order.status === 'REJECTED') continue;
    if (receivedAt < order.recordedAt + MARGIN_MS / 3 || receivedAt > order.expiresAt - MARGIN_MS) continue;
    const gaveUpAt = evidence.model.askedToGiveUp.get(order.id) ?? Infinity;
    if (gaveUpAt < receivedAt + MARGIN_MS) continue;
    looked += 1;
    if (order.status !== 'PAID') findings.push(`${describe(order)}, though payment ${id} came at ${clock(receivedAt)}`);
  }
  return check('paid_in_time', 'whoever paid in time has it', looked, findings);
}

function units({ ledger, gate }: Evidence): Check {
  const findings = ledger.sales.flatMap(({ saleId, total, sold }) => {
    const left = gate.find((row) => row.saleId === saleId)?.stock;
    return left !== undefined && left + sold === total ? [] : [`${saleId}: ${left} left + ${sold} sold, of ${total}`];
  });
  return check('units_add_up', 'units left + sold = total', ledger.sales.length, findings);
}

function conserved({ watch }: Evidence): Check {
  const findings = watch.notConserved.map(({ at, what }) => `${clock(at)} ${what}`);
  return check('gate_always_conserves', 'at every look stock + held + forfeited = total', watch.looks, findings);
}

function cameBack({ watch, struck }: Evidence): Check {
  const findings: string[] = [];
  const excused: string[] = [];
  const troubled = (at: number) =>
    struck.some(({ kind, startedAt, endedAt }) => {
      const atGate = LOSES_GATE.includes(kind) || kind.startsWith('redis-');
      return atGate && at >= startedAt && at <= endedAt + AFTERMATH_MS;
    });
  for (const { at, what } of watch.cameBack) (troubled(at) ? excused : findings).push(`${clock(at)} ${what}`);
  const says = 'a hold that was given back does not come back while Redis itself is left alone';
  return check('given_back_stays', says, watch.looks, findings, excused);
}

function describe({ id, saleId, userId, qty, status, reason, recordedAt }: Order): string {
  return `${id} of ${userId} in ${saleId}, ${qty} units: ${status}${reason ? ` ${reason}` : ''}, recorded ${clock(recordedAt)}`;
}

const clock = (at: number) => new Date(at).toISOString().slice(11, 23);

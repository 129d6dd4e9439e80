/** The checks of one sale at the gate, by itself and against the ledger. */
import type { GateHead, GateRead } from './gate.ts';
import type { SaleRow, Snapshot } from './ledger.ts';
import type { Finding, Result, Unjudged } from './report.ts';

/** The gate's checks and their rules in words, in the order of the report. */
export const gateCheckNames = {
  gate_conserves: 'at the gate stock + held + forfeited = total, and none but stock is below zero',
  gate_total_is_ledger_total: 'gate and ledger have the same total',
  gate_settings_applied: 'the gate has the version of the settings that the ledger has',
  gate_settings_same: 'at the same version gate and ledger have the same settings',
  gate_token_was_drawn: 'the keeper’s token at the gate was drawn from the ledger',
  gate_keys_do_not_expire: 'no key of the gate expires',
  held_is_sum_of_holds: 'held is the sum of the holds’ quantities',
  buyers_are_holders: 'who has a receipt has a hold, and the other way round',
  marked_are_holders: 'who is marked as not yet in the queue has a hold',
  hold_well_formed: 'a hold can be read',
  live_order_has_hold: 'a live order has its hold',
  hold_matches_order: 'a hold has what its order has: quantity, times, amount, currency',
  hold_has_order: 'a hold has its order, or is younger than the grace',
  reservation_held_once: 'a reservation is one hold',
  finished_order_holds_nothing: 'an expired, cancelled, rejected or refunded order holds nothing at the gate',
} as const;
/** For a closed sale only, instead of all others. */
export const closedGateCheckNames = { closed_sale_left_gate: 'a closed sale has nothing at the gate' } as const;
/** For an audit of all sales only. */
export const strayGateCheckNames = {
  gate_key_has_sale: 'what is at the gate is of a sale that the ledger has',
} as const;

/** A check being carried out. */
class Check {
  #result: Result;

  constructor(name: string, saleId: string | undefined) {
    this.#result = { name, ...(saleId === undefined ? {} : { saleId }), looked: 0, findings: [] };
  }

  look(subject: string, ok: boolean, found: () => string): void {
    this.#result.looked += 1;
    if (!ok) this.#result.findings.push({ subject, found: found() });
  }

  /** For things that were looked at in pages: how many, and what was found among them. */
  lookedAt(things: number, findings: Finding[]): void {
    this.#result.looked += things;
    this.#result.findings.push(...findings);
  }

  get result(): Result {
    return this.#result;
  }
}

type Checks = Record<keyof typeof gateCheckNames, Check>;

/**
 * Carries out all checks of a loaded gate.
 * @param graceMs how old a hold without an order may be
 */
export async function checkGate(
  sale: SaleRow,
  read: GateRead,
  ledger: Pick<Snapshot, 'liveOrders' | 'knownOrders'>,
  graceMs: number,
): Promise<{ results: Result[]; unjudged: Unjudged[] }> {
  const names = Object.keys(gateCheckNames) as (keyof typeof gateCheckNames)[];
  const checks = Object.fromEntries(names.map((name) => [name, new Check(name, sale.saleId)])) as Checks;
  checkFigures(checks, sale, read.head);
  checkHolders(checks, read);
  const atRest = checkHeld(checks, sale.saleId, read);
  const unmatched = await checkLiveOrders(checks, sale.saleId, read, ledger);
  await checkUnmatchedHolds(checks, sale.saleId, unmatched, ledger, read.head.now, graceMs);
  if (atRest) return { results: names.map((name) => checks[name].result), unjudged: [] };
  const why = 'the holds moved while they were read: give it time with --settle, or look again when it is quieter';
  return {
    results: names.filter((name) => name !== 'held_is_sum_of_holds').map((name) => checks[name].result),
    unjudged: [{ what: `held_is_sum_of_holds of sale ${sale.saleId}`, why }],
  };
}

/** A closed sale's keys are removed for good. */
export function checkClosedGate(saleId: string, head: GateHead): Result {
  const check = new Check('closed_sale_left_gate', saleId);
  check.look(saleId, head.keys.length === 0, () => `the sale is closed, but the gate has ${head.keys.join(', ')}`);
  return check.result;
}

/** @param known the ledger's sales */
export function checkStrayGates(atGate: Set<string>, known: Set<string>): Result {
  const check = new Check('gate_key_has_sale', undefined);
  for (const saleId of atGate) {
    check.look(saleId, known.has(saleId), () => `the gate has keys {sale:${saleId}}:…, the ledger has no such sale`);
  }
  return check.result;
}

function checkFigures(checks: Checks, sale: SaleRow, head: GateHead): void {
  const { fields } = head;
  const [stock, held, forfeited, total] = [head.stock, fields.held, fields.forfeited, fields.total].map(whole);
  const conserved =
    stock !== null && stock !== undefined && held != null && forfeited != null && total != null
      ? stock + held + forfeited === total && held >= 0n && forfeited >= 0n && total >= 0n
      : false;
  checks.gate_conserves.look(sale.saleId, conserved, () => {
    return `stock ${head.stock} + held ${fields.held} + forfeited ${fields.forfeited}, but total ${fields.total}`;
  });
  checks.gate_total_is_ledger_total.look(sale.saleId, total === BigInt(sale.total), () => {
    return `total is ${fields.total} at the gate and ${sale.total} in the ledger`;
  });
  const sameVersion = fields.settings === sale.settings;
  checks.gate_settings_applied.look(sale.saleId, sameVersion, () => {
    return `settings are version ${fields.settings} at the gate and ${sale.settings} in the ledger`;
  });
  if (sameVersion) {
    const differing = differences(sale, fields);
    checks.gate_settings_same.look(sale.saleId, differing.length === 0, () => differing.join('; '));
  }
  const [token, fence] = [whole(fields.token), whole(sale.fence)];
  checks.gate_token_was_drawn.look(
    sale.saleId,
    fence !== null && (fields.token === null || (token ?? fence + 1n) <= fence),
    () => {
      return `the gate refuses tokens below ${fields.token}, the ledger has drawn ${sale.fence}: no keeper can work on this sale`;
    },
  );
  for (const key of head.keys) {
    checks.gate_keys_do_not_expire.look(
      key,
      !head.expiring.includes(key),
      () => 'will expire: part of the gate will be lost',
    );
  }
}

/** Settings that differ, in words. The ledger's clock has microseconds, the gate's has milliseconds. */
function differences(sale: SaleRow, fields: GateHead['fields']): string[] {
  const texts = ['state', 'maxPerReservation', 'holdSeconds', 'amount', 'currency'] as const;
  const times = ['startsAt', 'endsAt'] as const;
  return [
    ...texts.filter((name) => fields[name] !== sale[name]),
    ...times.filter((name) => fields[name] === null || !(Math.abs(Number(fields[name]) - sale[name]) <= 1)),
  ].map((name) => `${name} is ${fields[name]} at the gate and ${sale[name]} in the ledger`);
}

function checkHolders(checks: Checks, read: GateRead): void {
  checks.buyers_are_holders.lookedAt(read.receipts + read.receiptless.length, [
    ...read.holdless.map((subject) => ({ subject, found: 'has a receipt (buyers), but no hold' })),
    ...read.receiptless.map((subject) => ({ subject, found: 'has a hold, but no receipt (buyers)' })),
  ]);
  checks.marked_are_holders.lookedAt(
    read.marks,
    read.markedWithoutHold.map((subject) => ({ subject, found: 'is marked in unqueued, but has no hold' })),
  );
  for (const [buyer, text] of read.holds) {
    checks.hold_well_formed.look(buyer, parse(text) !== undefined, () => `the hold is ${text}`);
  }
}

/** @returns false when it cannot be told: a sum over holds that came and went meanwhile says nothing if it does not fit */
function checkHeld(checks: Checks, saleId: string, read: GateRead): boolean {
  let units = 0n;
  for (const text of read.holds.values()) units += parse(text)?.qty ?? 0n;
  const fits = whole(read.head.fields.held) === units;
  if (!fits && read.moved) return false;
  checks.held_is_sum_of_holds.look(saleId, fits, () => {
    return `held is ${read.head.fields.held}, the ${read.holds.size} holds add up to ${units}`;
  });
  return true;
}

/** Compares each live order with its hold. @returns the holds that are no live order's, buyer to hold */
async function checkLiveOrders(
  checks: Checks,
  saleId: string,
  { holds }: GateRead,
  ledger: Pick<Snapshot, 'liveOrders'>,
): Promise<Map<string, string>> {
  const matched = new Set<string>();
  for await (const { reservationId, userId, status, terms } of ledger.liveOrders(saleId)) {
    const hold = holds.get(userId);
    const isIts = hold !== undefined && hold.split('|', 1)[0] === reservationId;
    checks.live_order_has_hold.look(reservationId, isIts, () => {
      return `${status} order of buyer ${userId}, for whom the gate has ${hold === undefined ? 'no hold' : `hold ${hold}`}`;
    });
    if (!isIts) continue;
    matched.add(userId);
    checks.hold_matches_order.look(reservationId, hold === `${reservationId}|${terms}`, () => {
      return `buyer ${userId}: the hold is ${hold}, the order ${reservationId}|${terms}`;
    });
  }
  // A live order's hold has its order, which is one and not finished.
  for (const name of ['hold_has_order', 'reservation_held_once', 'finished_order_holds_nothing'] as const) {
    checks[name].lookedAt(matched.size, []);
  }
  return new Map([...holds].filter(([buyer]) => !matched.has(buyer)));
}

/** Holds that are no live order's: young enough to be on their way, or wrong. */
async function checkUnmatchedHolds(
  checks: Checks,
  saleId: string,
  unmatched: Map<string, string>,
  ledger: Pick<Snapshot, 'knownOrders'>,
  now: number,
  graceMs: number,
): Promise<void> {
  const holds = [...unmatched].flatMap(([buyer, text]) => {
    const hold = parse(text);
    return hold ? [{ buyer, ...hold }] : [];
  });
  const orders = await ledger.knownOrders(holds.map(({ reservationId }) => reservationId));
  const holders = new Map<string, string>();
  for (const { buyer, reservationId, reservedAt } of holds) {
    const other = holders.get(reservationId);
    holders.set(reservationId, buyer);
    checks.reservation_held_once.look(reservationId, other === undefined, () => `held by buyers ${other} and ${buyer}`);

    const order = orders.get(reservationId);
    const isIts = order?.saleId === saleId && order.userId === buyer;
    checks.finished_order_holds_nothing.look(reservationId, !isIts, () => {
      return `${order?.status} order of buyer ${buyer}, whose hold is still at the gate`;
    });
    const age = Math.abs(now - reservedAt);
    checks.hold_has_order.look(buyer, isIts || (!order && age <= graceMs), () => {
      return order
        ? `holds ${reservationId}, which is the order of buyer ${order.userId} in sale ${order.saleId}`
        : `holds ${reservationId} since ${Math.round(age / 1000)} s, and there is no such order`;
    });
  }
}

/** A hold's reservation, quantity and time; undefined when it cannot be read. */
function parse(text: string): { reservationId: string; qty: bigint; reservedAt: number } | undefined {
  const fields = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\|(\d+)\|(\d+)\|(\d+)\|\d+\|[A-Z]{3}$/.exec(text);
  if (!fields) return undefined;
  const [, reservationId = '', qty = '0', reservedAt = '0', expiresAt = '0'] = fields;
  if (BigInt(qty) < 1n || BigInt(expiresAt) <= BigInt(reservedAt)) return undefined;
  return { reservationId, qty: BigInt(qty), reservedAt: Number(reservedAt) };
}

function whole(text: string | null): bigint | null {
  return text !== null && /^-?\d+$/.test(text) ? BigInt(text) : null;
}

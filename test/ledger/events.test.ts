/**
 * Every status × every event, in one table: what the order, its money, the journal and the gate are afterwards. All
 * cells run through the product's own doors, and at the end the audit looks over everything that they left.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KnownEvent } from '../../src/domain/payment.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { finish } from '../../src/operations/finish.ts';
import { RefundConflict, refundReservation } from '../../src/operations/refund.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { books, event, expectSound, madeUp, moveBack, newSale, openHouse, win, type House } from './house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const TOTAL = 10;
const QTY = 2;

/** As the webhook route does it. */
async function report(given: KnownEvent): Promise<void> {
  const { ended } = await applyEvent(house.pool, given);
  await finish(house.stores, ended);
}

/** How an order comes into each status; its hold was won at the gate. `none`: no order yet. */
const arrange = {
  none: () => Promise.resolve(),
  PENDING_PAYMENT: (hold) => recordHolds(house.stores, [hold]),
  PAID: async (hold) => {
    await recordHolds(house.stores, [hold]);
    await report(event(hold, 'payment.succeeded', { paymentId: `first-${hold.reservationId}` }));
  },
  EXPIRED: async (hold) => {
    await recordHolds(house.stores, [hold]);
    await moveBack(house, hold, 3_600_000);
    await sweep(house.stores, 100);
  },
  CANCELLED: async (hold) => {
    await recordHolds(house.stores, [hold]);
    await cancelReservation(house.stores, hold);
  },
  REFUNDED: async (hold) => {
    await arrange.PAID(hold);
    await refundReservation(house.stores, hold, true);
  },
  REJECTED: async (hold) => {
    // The gate forgot a hold that took nearly all, and promised what the ledger does not have.
    const forgotten = madeUp(hold.saleId, 'forgotten', { qty: TOTAL - QTY + 1 });
    await recordHolds(house.stores, [forgotten]);
    await recordHolds(house.stores, [hold]);
    await cancelReservation(house.stores, forgotten);
  },
} satisfies Record<string, (hold: Hold) => Promise<unknown>>;
type Status = keyof typeof arrange;
const STATUSES = Object.keys(arrange) as Status[];

const paid = (hold: Hold, but: Partial<KnownEvent> = {}) =>
  event(hold, 'payment.succeeded', { paymentId: `pay-${hold.reservationId}`, ...but });
/** Money that came in any case: this much is owed back or parked, whatever the status. */
const money = (hold: Hold, but: Partial<KnownEvent>) => report(paid(hold, but));

/** What is not PAID is refused. */
const refundByShop = (hold: Hold, returnUnits: boolean) =>
  refundReservation(house.stores, hold, returnUnits).catch((error: unknown) => {
    expect(error).toBeInstanceOf(RefundConflict);
  });

const happen: Record<string, (hold: Hold) => Promise<unknown>> = {
  'message again': (hold) => recordHolds(house.stores, [hold]),
  'message again, twice in one batch': (hold) => recordHolds(house.stores, [hold, hold]),
  'payment.succeeded': (hold) => report(paid(hold)),
  'payment.succeeded, one minor unit less': (hold) => money(hold, { amount: hold.amount - 1 }),
  'payment.succeeded, one minor unit more': (hold) => money(hold, { amount: hold.amount + 1 }),
  'payment.succeeded, other currency': (hold) => money(hold, { currency: 'USD' }),
  'payment.succeeded, zero': (hold) => money(hold, { amount: 0 }),
  'payment.succeeded, then a second payment': async (hold) => {
    await report(paid(hold));
    await report(paid(hold, { paymentId: `second-${hold.reservationId}` }));
  },
  'the same event again': async (hold) => {
    const same = paid(hold);
    await report(same);
    await report(same);
  },
  'a second event of one payment': async (hold) => {
    await report(paid(hold));
    await report(paid(hold, { eventId: randomUUID() }));
  },
  'payment.failed': (hold) => report(event(hold, 'payment.failed')),
  'payment.failed, then succeeded': async (hold) => {
    await report(event(hold, 'payment.failed'));
    await report(paid(hold));
  },
  'payment.canceled': (hold) => report(event(hold, 'payment.canceled')),
  'payment.canceled of the captured payment': async (hold) => {
    await report(paid(hold));
    await report(event(hold, 'payment.canceled'));
  },
  'payment.canceled of a payment that was captured, but too small': async (hold) => {
    await money(hold, { amount: hold.amount - 1 });
    await report(event(hold, 'payment.canceled'));
  },
  'payment.canceled, then succeeded': async (hold) => {
    await report(event(hold, 'payment.canceled'));
    await report(paid(hold));
  },
  'cancelled by the buyer': (hold) => cancelReservation(house.stores, hold),
  'sweep before its time': () => sweep(house.stores, 100),
  'sweep after its time': async (hold) => {
    await moveBack(house, hold, 3_600_000);
    await sweep(house.stores, 100);
  },
  'refund.succeeded, none under way': (hold) => report(event(hold, 'refund.succeeded')),
  'refund.failed, none under way': (hold) => report(event(hold, 'refund.failed')),
  'payment and refund.succeeded': async (hold) => {
    await report(paid(hold));
    await report(event(hold, 'refund.succeeded'));
  },
  'refund.succeeded, then the payment': async (hold) => {
    await report(event(hold, 'refund.succeeded'));
    await report(paid(hold));
  },
  'payment and refund.succeeded of a part': async (hold) => {
    await report(paid(hold));
    await report(event(hold, 'refund.succeeded', { amount: hold.amount - 1 }));
  },
  'payment and refund.succeeded, then failed': async (hold) => {
    await report(paid(hold));
    await report(event(hold, 'refund.succeeded'));
    await report(event(hold, 'refund.failed'));
  },
  'refunded by the shop': (hold) => refundByShop(hold, true),
  'refunded by the shop, its units out of the sale': (hold) => refundByShop(hold, false),
  'payment and refund.failed, then succeeded': async (hold) => {
    await report(paid(hold));
    await report(event(hold, 'refund.failed'));
    await report(event(hold, 'refund.succeeded'));
  },
};

/** What stays as it was. */
const SAME = {
  none: 'none',
  PENDING_PAYMENT: 'PENDING_PAYMENT',
  PAID: 'PAID; first APPLIED',
  EXPIRED: 'EXPIRED',
  CANCELLED: 'CANCELLED',
  REFUNDED: 'REFUNDED; first OWED by_shop PENDING',
  REJECTED: 'REJECTED',
} satisfies Record<Status, string>;
const owed = (of: string, status = 'PENDING') => ({
  PAID: `PAID; first APPLIED; ${of} already_paid ${status}`,
  EXPIRED: `EXPIRED; ${of} expired ${status}`,
  CANCELLED: `CANCELLED; ${of} cancelled ${status}`,
  REFUNDED: `REFUNDED; first OWED by_shop PENDING; ${of} refunded ${status}`,
  REJECTED: `REJECTED; ${of} rejected ${status}`,
});
const mismatch = {
  ...owed('pay OWED'),
  none: 'none; pay PARKED',
  PENDING_PAYMENT: 'PENDING_PAYMENT; pay OWED amount_mismatch PENDING',
};
const captured = { ...owed('pay OWED'), none: 'none; pay PARKED', PENDING_PAYMENT: 'PAID; pay APPLIED' };

const WITHDRAWN = 'REFUNDED; pay OWED at_provider SUCCEEDED';

/** Order; then each payment with its status and, if it is owed back, why and how far the refund is. */
const expected: Record<keyof typeof happen, Record<Status, string>> = {
  'message again': { ...SAME, none: 'PENDING_PAYMENT' },
  'message again, twice in one batch': { ...SAME, none: 'PENDING_PAYMENT' },
  'payment.succeeded': captured,
  'payment.succeeded, one minor unit less': mismatch,
  'payment.succeeded, one minor unit more': mismatch,
  'payment.succeeded, other currency': mismatch,
  'payment.succeeded, zero': {
    ...owed('pay OWED', 'SUCCEEDED'), // there is nothing to be sent back
    none: 'none; pay PARKED',
    PENDING_PAYMENT: 'PENDING_PAYMENT; pay OWED amount_mismatch SUCCEEDED',
  },
  'payment.succeeded, then a second payment': {
    none: 'none; pay PARKED; second PARKED',
    PENDING_PAYMENT: 'PAID; pay APPLIED; second OWED already_paid PENDING',
    PAID: 'PAID; first APPLIED; pay OWED already_paid PENDING; second OWED already_paid PENDING',
    EXPIRED: 'EXPIRED; pay OWED expired PENDING; second OWED expired PENDING',
    CANCELLED: 'CANCELLED; pay OWED cancelled PENDING; second OWED cancelled PENDING',
    REFUNDED: 'REFUNDED; first OWED by_shop PENDING; pay OWED refunded PENDING; second OWED refunded PENDING',
    REJECTED: 'REJECTED; pay OWED rejected PENDING; second OWED rejected PENDING',
  },
  'the same event again': captured,
  'a second event of one payment': captured,
  'payment.failed': SAME,
  'payment.failed, then succeeded': captured,
  'payment.canceled': { ...SAME, PENDING_PAYMENT: 'CANCELLED' },
  'payment.canceled of the captured payment': captured,
  'payment.canceled of a payment that was captured, but too small': mismatch,
  'payment.canceled, then succeeded': { ...captured, PENDING_PAYMENT: 'CANCELLED; pay OWED cancelled PENDING' },
  'cancelled by the buyer': { ...SAME, none: 'CANCELLED', PENDING_PAYMENT: 'CANCELLED' },
  'sweep before its time': SAME,
  'sweep after its time': { ...SAME, PENDING_PAYMENT: 'EXPIRED' },
  'refund.succeeded, none under way': SAME,
  'refund.failed, none under way': SAME,
  'payment and refund.succeeded': {
    ...owed('pay OWED', 'SUCCEEDED'),
    none: 'none; pay PARKED',
    PENDING_PAYMENT: WITHDRAWN, // made at the provider, without us
  },
  'refund.succeeded, then the payment': {
    ...captured, // our own refund is yet to be made: the provider is asked, and knows of it
    PENDING_PAYMENT: WITHDRAWN,
  },
  'payment and refund.succeeded of a part': {
    ...captured,
  },
  'payment and refund.failed, then succeeded': {
    ...owed('pay OWED', 'FAILED'), // final: a person looks
    none: 'none; pay PARKED',
    PENDING_PAYMENT: WITHDRAWN,
  },
  'payment and refund.succeeded, then failed': {
    ...owed('pay OWED', 'FAILED'), // the buyer's bank refused it later
    none: 'none; pay PARKED',
    PENDING_PAYMENT: 'REFUNDED; pay OWED at_provider FAILED',
  },
  'refunded by the shop': { ...SAME, PAID: 'REFUNDED; first OWED by_shop PENDING' },
  'refunded by the shop, its units out of the sale': { ...SAME, PAID: 'REFUNDED; first OWED by_shop PENDING' },
};

/** What each status has taken of the sale: the journal, what is sold, and the gate's stock, held and forfeited. */
const TAKEN = {
  none: { journal: [], sold: 0, gate: [TOTAL - QTY, QTY, 0] },
  PENDING_PAYMENT: { journal: [QTY], sold: QTY, gate: [TOTAL - QTY, QTY, 0] },
  PAID: { journal: [QTY], sold: QTY, gate: [TOTAL - QTY, QTY, 0] },
  EXPIRED: { journal: [QTY, -QTY], sold: 0, gate: [TOTAL, 0, 0] },
  CANCELLED: { journal: [QTY, -QTY], sold: 0, gate: [TOTAL, 0, 0] },
  REJECTED: { journal: [], sold: 0, gate: [TOTAL - QTY, 0, QTY] },
  REFUNDED: { journal: [QTY, -QTY], sold: 0, gate: [TOTAL, 0, 0] },
} satisfies Record<Status, object>;

async function found(hold: Hold) {
  const { rows: orders } = await house.db.query<{ status: Status; marked: boolean; withdrawn: boolean }>(
    `select status, gate_released_at is not null as marked, units_returned is false as withdrawn from sale_orders where reservation_id = $1`,
    [hold.reservationId],
  );
  const { rows: payments } = await house.db.query<{ said: string }>(
    `select concat_ws(' ', split_part(payment_id, '-', 1), p.status, r.reason, r.status) as said
     from payments p left join refunds r using (payment_id) where reservation_id = $1 order by payment_id`,
    [hold.reservationId],
  );
  const { rows: journal } = await house.db.query<{ delta: number }>(
    'select delta from ledger_entries where reservation_id = $1 order by entry_id',
    [hold.reservationId],
  );
  const [order] = orders;
  const { sold, stock, held, forfeited } = await books(house, hold.saleId);
  return {
    says: [order?.status ?? 'none', ...payments.map(({ said }) => said)].join('; '),
    status: order?.status ?? ('none' as const),
    marked: order?.marked ?? false,
    withdrawn: order?.withdrawn ?? false,
    taken: { journal: journal.map(({ delta }) => delta), sold, gate: [stock, held, forfeited] },
  };
}

describe.each(STATUSES)('%s', (status) => {
  test.each(Object.keys(happen))('%s', async (name) => {
    const saleId = await newSale(house, { total: TOTAL });
    const hold = await win(house, saleId, 'ann', QTY);
    await arrange[status](hold);
    expect((await found(hold)).says, 'as arranged').toBe(SAME[status]);
    await happen[name]?.(hold);

    const now = await found(hold);
    expect(now.says).toBe(expected[name]?.[status]);
    // Written from the hold, before there was an order: it took nothing.
    const early = status === 'none' && now.status === 'CANCELLED';
    const taken = early ? { ...TAKEN.CANCELLED, journal: [] } : TAKEN[now.status];
    expect(now.taken).toEqual(now.withdrawn ? { ...taken, gate: [TOTAL - QTY, 0, 0] } : taken);
    expect(now.withdrawn).toBe(
      now.says.includes('at_provider') || (name.endsWith('out of the sale') && status === 'PAID'),
    );
    const over = ['EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED'];
    expect(now.marked, 'seen to be free at the gate').toBe(over.includes(now.status));
  });
});

test('the audit finds everything sound that the table left behind', async () => {
  await expectSound(house);
});

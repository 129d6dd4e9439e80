/**
 * What the page shows for what it knows: pure, no DOM. Every state has one screen. Nothing here says yes before the ledger
 * does: a hold is "you hold one", and only PAID is "it is yours".
 */
import { money, timeOfDay, units } from './words.js';

/**
 * @typedef {{ state: string, name: string, startsAt: string, endsAt: string, total: number, unitsLeft?: number,
 *   price: { amount: number, currency: string }, serverTime: string }} Sale as GET /sales/{saleId} has it
 * @typedef {{ reservationId: string, qty: number, status: string, amount: number, currency: string, reservedAt: string,
 *   expiresAt: string, reason?: string, refund?: string }} Reservation
 * @typedef {{ code: string, retryAfter?: number, mayReturn?: boolean, startsAt?: string }} Refused
 * @typedef {{ sale: Sale | null, reservation: Reservation | null, lost: boolean, refused: Refused | null,
 *   payAt?: string, paid?: true }} View as src/http/shop/view.ts has it
 * @typedef {'buy' | 'pay' | 'cancel'} Press
 * @typedef {{ does: Press | 'stop', label: string, quiet?: boolean }} Action
 * @typedef {{ name: string, title: string, text: string, until?: number, actions: Action[] }} Screen until: what the
 *   countdown runs to, epoch milliseconds
 * @typedef {Refused & { press: Press, until: number, saidAt: number, again: boolean }} Refusal of the last press; until: when
 *   to try again; again: the page does so by itself
 * @typedef {{ sale: Sale | null, reservation: Reservation | null, lost: boolean, refusal: Refusal | null,
 *   paid: boolean }} Known paid: the provider took the money, as far as this page knows
 */

const HELD = ['QUEUED', 'PENDING_PAYMENT'];
/** @type {Action} */
const PAY_NO_MORE = { does: 'cancel', label: 'Give it up', quiet: true };

/** @param {Reservation | null} reservation */
export const isHeld = (reservation) => reservation !== null && HELD.includes(reservation.status);

/**
 * @param {Known} known
 * @param {number} now the server's time, epoch milliseconds
 * @returns {Screen}
 */
export function screenOf(known, now) {
  const { sale, reservation, refusal } = known;
  if (refusal?.code === 'no_cookies') return NO_COOKIES;
  if (refusal?.again) return busy(refusal);
  if (reservation && isHeld(reservation)) return held(reservation, known, now);
  if (reservation?.status === 'PAID') return paid(reservation);
  if (sale && (phase(sale, now) === 'ended' || sale.state === 'closed')) return withEnd(known, ENDED);
  if (sale?.state === 'paused') return withEnd(known, PAUSED);
  if (refusal?.code === 'sold_out') return soldOut(refusal, now);
  if (reservation || known.lost)
    return withEnd(known, { name: 'over', title: '', text: '', actions: again(sale, now) });
  if (!sale) return UNKNOWN;
  return phase(sale, now) === 'scheduled' ? scheduled(sale, now) : open(sale);
}

/**
 * The sale's phase by the clock: a sale begins on the page when it begins, not when the page hears of it.
 * @param {Sale} sale
 * @param {number} now
 */
export function phase({ state, startsAt, endsAt }, now) {
  if (state === 'scheduled') return now >= Date.parse(startsAt) ? 'open' : 'scheduled';
  if (state === 'open') return now >= Date.parse(endsAt) ? 'ended' : 'open';
  return state;
}

/** @type {Screen} */
const NO_COOKIES = {
  name: 'no_cookies',
  title: 'This shop needs a cookie',
  text: 'Without it we could not find again what you hold. Please allow cookies for this page and reload it.',
  actions: [],
};
/** @type {Screen} */
const UNKNOWN = {
  name: 'unknown',
  title: 'It is very busy',
  text: 'We cannot see the sale at this moment. We go on asking by ourselves: there is nothing you need to do.',
  actions: [],
};
/** @type {Screen} */
const ENDED = { name: 'ended', title: 'The sale is over', text: 'Thank you for coming by.', actions: [] };
/** @type {Screen} */
const PAUSED = {
  name: 'paused',
  title: 'The sale is paused',
  text: 'It goes on here by itself. There is nothing you need to do.',
  actions: [],
};

/** @param {Sale} sale @param {number} now @returns {Screen} */
function scheduled(sale, now) {
  const startsAt = Date.parse(sale.startsAt);
  return {
    name: 'scheduled',
    title: 'Not begun yet',
    text: `The sale begins at ${timeOfDay(startsAt, now)}. The button to buy appears here by itself: no need to reload.`,
    until: startsAt,
    actions: [],
  };
}

/** @param {Sale} sale @returns {Screen} */
function open(sale) {
  const buy = { does: /** @type {const} */ ('buy'), label: `Buy for ${money(sale.price)}` };
  if (sale.unitsLeft !== 0) {
    return {
      name: 'open',
      title: 'On sale now',
      text: 'Press Buy, and one is held for you while you pay.',
      actions: [buy],
    };
  }
  return {
    name: 'none_now',
    title: 'None left at this moment',
    text: 'What others do not pay for comes back. This page shows it when it does.',
    actions: [{ ...buy, label: 'Try to get one' }],
  };
}

/** @param {Reservation} reservation @param {Known} known @param {number} now @returns {Screen} */
function held({ qty, expiresAt, ...price }, { paid, refusal }, now) {
  const until = Date.parse(expiresAt);
  if (paid) {
    return {
      name: 'paying',
      title: 'Your payment is on its way',
      text: 'We are waiting for the payment provider’s word. This page says so when it is there.',
      actions: [],
    };
  }
  if (now >= until) {
    return {
      name: 'checking',
      title: 'The time to pay is over',
      text: 'If you have paid in time, this page says so in a moment.',
      actions: [],
    };
  }
  const failed = refusal?.press === 'pay' ? `${WHY_NOT_PAID[refusal.code] ?? WHY_NOT_PAID.other} ` : '';
  const pay = `Pay before ${timeOfDay(until, now)} to make it yours. Until then nobody else can have it.`;
  return {
    name: 'held',
    title: `You hold ${units(qty)}`,
    text: failed + pay,
    until,
    actions: [{ does: 'pay', label: `Pay ${money(price)}` }, PAY_NO_MORE],
  };
}

/** @type {Record<string, string>} */
const WHY_NOT_PAID = {
  payment_provider_refused: 'The payment was not accepted.',
  payment_provider_unavailable: 'The payment provider could not be reached. Please pay again: you pay only once.',
  other: 'That did not work. Please try again: you pay only once.',
};

/** @param {Reservation} reservation @returns {Screen} */
function paid({ qty, amount, currency, reservationId }) {
  const what = qty === 1 ? 'It is yours' : 'They are yours';
  return {
    name: 'paid',
    title: `Paid. ${what}.`,
    text: `Thank you! We have received ${money({ amount, currency })}. Your order: ${reservationId.slice(0, 8)}`,
    actions: [],
  };
}

/** @param {Refusal} refusal @param {number} now @returns {Screen} */
function soldOut({ mayReturn, until }, now) {
  if (mayReturn === false) {
    return {
      name: 'sold_out',
      title: 'Sold out',
      text: 'Every one is paid for, so none comes back. Thank you for trying.',
      actions: [],
    };
  }
  /** @type {Action[]} */
  const actions = [{ does: 'buy', label: 'Try again' }];
  if (now >= until) {
    return { name: 'try_now', title: 'One may be back now', text: 'It is worth a try.', actions };
  }
  const why = 'Some are held by others, and come back if they are not paid for.';
  const title = `Sold out, may come back at ${timeOfDay(until, now)}`;
  return { name: 'sold_out_may_return', title, text: why, until, actions };
}

/** @param {Refusal} refusal @returns {Screen} */
function busy({ code, press, until }) {
  const often = code === 'rate_limited';
  const held = press === 'buy' ? ' If you hold one already, you will see it.' : '';
  return {
    name: often ? 'too_often' : 'busy',
    title: often ? 'That was very often' : 'Very busy at this moment',
    text: `We could not do it yet, and try again by ourselves.${held}`,
    until,
    actions: [{ does: 'stop', label: 'Stop trying', quiet: true }],
  };
}

/** @param {Sale | null} sale @param {number} now @returns {Action[]} */
function again(sale, now) {
  return sale && phase(sale, now) === 'open' ? [{ does: 'buy', label: 'Try for another' }] : [];
}

/**
 * How the buyer's last reservation ended, in front of what the sale's own state has to say.
 * @param {Known} known
 * @param {Screen} screen
 * @returns {Screen}
 */
function withEnd({ reservation, lost }, screen) {
  const told = lost ? LOST : reservation && ENDS[reservation.status];
  if (!told) return screen;
  const [title, text] = told;
  const refund = reservation?.refund ? ` ${REFUND[reservation.refund] ?? ''}` : '';
  const sale = screen.title === '' ? '' : ` ${screen.title}.`;
  return {
    ...screen,
    name: `${(lost ? 'lost' : (reservation?.status ?? '')).toLowerCase()}`,
    title,
    text: text + refund + sale,
  };
}

/** @type {Record<string, [title: string, text: string]>} */
const ENDS = {
  EXPIRED: ['Your time to pay ran out', 'What you held is for sale again.'],
  CANCELLED: ['Given up', 'You hold nothing any more, and have nothing to pay.'],
  REJECTED: [
    'We are sorry: we cannot give you this one',
    'We had promised more than there were. You have bought nothing.',
  ],
  REFUNDED: ['Your purchase was undone', 'It is not yours any more.'],
};
/** @type {[title: string, text: string]} */
const LOST = [
  'We cannot find what you held',
  'Please try again. If you have paid for it, your money comes back to you.',
];
/** @type {Record<string, string>} */
const REFUND = {
  PENDING: 'Your money is on its way back to you.',
  SUBMITTED: 'Your money is on its way back to you.',
  SUCCEEDED: 'Your money has been sent back to you.',
  FAILED: 'Your money could not be sent back yet: the shop sees to it.',
};

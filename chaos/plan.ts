/**
 * Who comes when, and what they will do: drawn from the seed alone, each visit by a generator of its own. Pure: no I/O.
 */
import type { Random } from './random.ts';

/** A sale of the run. Times in seconds, price in minor units. `payers`: how much more or less its holders like to pay. */
export type SalePlan = {
  saleId: string;
  total: number;
  holdSeconds: number;
  maxPerReservation: number;
  price: number;
  buyers: number;
  weight: number;
  payers: number;
};

/** Small ones that sell out and come back by expiry, one with much stock, and one that the merchant keeps changing. */
export const SALES: readonly SalePlan[] = [
  sale('single', { total: 1, holdSeconds: 3, maxPerReservation: 1, buyers: 8, weight: 1, payers: 0.01 }),
  sale('few', { total: 12, holdSeconds: 4, maxPerReservation: 2, buyers: 40, weight: 2, payers: 0.04 }),
  sale('some', { total: 150, holdSeconds: 6, maxPerReservation: 3, buyers: 150, weight: 2, payers: 0.2 }),
  sale('many', { total: 20_000, holdSeconds: 8, maxPerReservation: 4, buyers: 3000, weight: 4, payers: 1 }),
  sale('patient', { total: 150, holdSeconds: 14, maxPerReservation: 2, buyers: 300, weight: 1, payers: 0.6 }),
  sale('changing', { total: 150, holdSeconds: 5, maxPerReservation: 3, buyers: 120, weight: 2, payers: 0.2 }),
];
export const CHANGING = 'changing';

function sale(saleId: string, rest: Omit<SalePlan, 'saleId' | 'price'>): SalePlan {
  return { saleId, price: 500, ...rest };
}

/** What a winner does with the hold, and how often out of a hundred or so. */
export const FATES = {
  abandon: 22,
  pay: 26,
  payTwice: 6,
  payWrong: 6,
  payLate: 8,
  payAtTheEdge: 7,
  declinedThenPay: 6,
  payAtOnce: 6,
  cancel: 12,
  cancelAndPay: 6,
  providerCancels: 5,
  strayPayment: 2,
} as const;
export type Fate = keyof typeof FATES;
export type FateWeights = Record<Fate, number>;

/** How Buy is pressed: once, twice at the same moment, or with the line cut right after, and then again. */
export type Pressing = 'once' | 'twice' | 'cut';

export type Visit = {
  n: number;
  /** From the start of the load. */
  atMs: number;
  sale: SalePlan;
  userId: string;
  qty: number;
  /** The API that is asked first; the other one is next. */
  api: 0 | 1;
  pressing: Pressing;
  cutAfterMs: number;
  /** Pauses before pressing again after an answer that was none. */
  againMs: number[];
  fate: Fate;
  /** Pause before the fate begins, as a part of the hold's time. */
  think: number;
  /** Pauses before Cancel is pressed again, long after: the buyer may hold something new by then. */
  cancelAgainMs: number[];
  lookMs: number[];
  /** How often the provider tells of it at the same moment, and how much later. */
  repeat: number;
  eventDelayMs: number;
  wrongness: 'less' | 'more' | 'currency' | 'nothing';
};

export type PlanOptions = { ratePerSecond: number; fates?: Partial<FateWeights> | undefined };

/** The n-th visit, `afterMs` after the one before. */
export function drawVisit(seed: Random, n: number, beforeMs: number, options: PlanOptions): Visit {
  const random = seed.fork(`visit ${n}`);
  const plan = random.pick(SALES.flatMap((one) => Array.from({ length: one.weight }, () => one)));
  const fates: FateWeights = { ...FATES, ...options.fates };
  fates.pay *= plan.payers;
  fates.payAtOnce *= plan.payers;
  fates.payTwice *= plan.payers;
  fates.declinedThenPay *= plan.payers;
  return {
    n,
    atMs: beforeMs + random.gap(1000 / options.ratePerSecond),
    sale: plan,
    // Half of them are the same few again and again: those who come back while something old of theirs is under way.
    userId: `${plan.saleId}-${random.whole(1, random.chance(0.5) ? Math.ceil(plan.buyers / 10) + 3 : plan.buyers)}`,
    // Now and then more than is allowed.
    qty: random.chance(0.02) ? plan.maxPerReservation + 1 : random.whole(1, plan.maxPerReservation),
    api: random.chance(0.5) ? 0 : 1,
    pressing: random.weighted({ once: 70, twice: 18, cut: 12 }),
    cutAfterMs: random.between(1, 30),
    againMs: Array.from({ length: random.whole(0, 4) }, () => random.between(100, 2000)),
    fate: random.weighted(fates),
    think: random.between(0, 0.7),
    cancelAgainMs: Array.from({ length: random.whole(0, 2) }, () => random.between(300, 4000)),
    lookMs: Array.from({ length: random.whole(0, 2) }, () => random.between(50, 3000)),
    repeat: random.chance(0.2) ? random.whole(2, 4) : 1,
    eventDelayMs: random.chance(0.3) ? random.between(0, 1500) : 0,
    wrongness: random.pick(['less', 'more', 'currency', 'nothing']),
  };
}

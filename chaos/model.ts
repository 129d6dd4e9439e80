/**
 * What the outside world knows, noted beside the system and without asking it: who asked for what, what each buyer was
 * told, what each payment was for.
 */

/** What a buyer was told to hold. Times in epoch milliseconds. */
export type Told = {
  reservationId: string;
  saleId: string;
  userId: string;
  qty: number;
  amount: number;
  currency: string;
  reservedAt: number;
  expiresAt: number;
};
export type ToldOften = Told & { firstAt: number; lastAt: number };

/** An event that a person would call a payment; `right` is one that should pay its reservation if it comes in time. */
export type Purpose = 'right' | 'second' | 'wrong' | 'stray' | 'never_captured';
export type MadePayment = {
  paymentId: string;
  reservationId: string;
  amount: number;
  currency: string;
  purpose: Purpose;
};

/** Somebody with a hold was told that nothing is left. */
export type TurnedAway = { reservationId: string; askedAt: number; answeredAt: number };

export class Model {
  readonly told = new Map<string, ToldOften>();
  readonly payments = new Map<string, MadePayment>();
  /** When a buyer was told (204) that the reservation is given up. */
  readonly givenUp = new Map<string, number>();
  /** When somebody first asked for it to be given up, whatever the answer was. */
  readonly askedToGiveUp = new Map<string, number>();
  /** The final status that a buyer was shown. */
  readonly shown = new Map<string, string>();
  readonly turnedAway: TurnedAway[] = [];
  /** What must never be answered, in words. */
  readonly wrongAnswers: string[] = [];
  /** Answers by kind, for each second of the run. */
  readonly answers: Map<string, number>[] = [];
  #asked = new Set<string>();
  #ofBuyer = new Map<string, ToldOften[]>();
  #claimed = new Set<string>();
  #startedAt: number;

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  asks({ saleId, userId, qty }: Pick<Told, 'saleId' | 'userId' | 'qty'>): void {
    this.#asked.add(`${saleId} ${userId} ${qty}`);
  }

  hasAsked({ saleId, userId, qty }: Pick<Told, 'saleId' | 'userId' | 'qty'>): boolean {
    return this.#asked.has(`${saleId} ${userId} ${qty}`);
  }

  /** A yes. The same reservation must be told the same each time. */
  tells(told: Told): void {
    const now = Date.now();
    const before = this.told.get(told.reservationId);
    if (!before) {
      const first = { ...told, firstAt: now, lastAt: now };
      this.told.set(told.reservationId, first);
      const buyer = `${told.saleId} ${told.userId}`;
      this.#ofBuyer.set(buyer, [...(this.#ofBuyer.get(buyer) ?? []), first]);
      return;
    }
    before.lastAt = now;
    for (const name of Object.keys(told) as (keyof Told)[]) {
      if (told[name] === before[name]) continue;
      this.wrongAnswers.push(`${told.reservationId}: told ${name} ${before[name]}, later ${told[name]}`);
    }
  }

  /** Noted if this buyer was told of a hold a second ago or longer, and its time is not nearly over. */
  soldOut(saleId: string, userId: string, askedAt: number): void {
    const answeredAt = Date.now();
    for (const { reservationId, firstAt, expiresAt } of this.#ofBuyer.get(`${saleId} ${userId}`) ?? []) {
      if (firstAt > askedAt - 1000 || expiresAt < answeredAt + 1000) continue;
      this.turnedAway.push({ reservationId, askedAt, answeredAt });
    }
  }

  /** @returns true for the first: of all who were told of a reservation, one decides what becomes of it */
  claim(reservationId: string): boolean {
    if (this.#claimed.has(reservationId)) return false;
    this.#claimed.add(reservationId);
    return true;
  }

  /** A status that can never change again must not be shown and then change. */
  shows(reservationId: string, status: string): void {
    if (status === 'QUEUED' || status === 'PENDING_PAYMENT') {
      const before = this.shown.get(reservationId);
      if (before) this.wrongAnswers.push(`${reservationId}: shown as ${before}, later as ${status}`);
      return;
    }
    const before = this.shown.get(reservationId) ?? status;
    if (before !== status) this.wrongAnswers.push(`${reservationId}: shown as ${before}, later as ${status}`);
    this.shown.set(reservationId, status);
  }

  /** Counts an answer for the picture and the table. */
  answered(kind: string): void {
    const second = Math.max(0, Math.floor((Date.now() - this.#startedAt) / 1000));
    while (this.answers.length <= second) this.answers.push(new Map());
    const counts = this.answers[second];
    counts?.set(kind, (counts.get(kind) ?? 0) + 1);
  }
}

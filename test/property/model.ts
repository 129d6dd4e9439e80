/**
 * What should be, kept beside the real stores: a sale small enough to be right at a glance. Time is told to it.
 * The gate never loses anything here, so no order is ever REJECTED and nothing is ever forfeited.
 */
export const HOUR = 3_600_000;
/** Far apart and far from any real time that a test takes. */
export const GRACES = { mark: HOUR, lost: 3 * HOUR, hold: 10 * HOUR, parked: 20 * HOUR };
export const MAX_QTY = 3;

export type Status = 'PENDING_PAYMENT' | 'PAID' | 'EXPIRED' | 'CANCELLED' | 'REFUNDED';
export type Reservation = {
  id: string;
  user: string;
  qty: number;
  amount: number;
  /** Milliseconds since it was reserved, and until it ends. */
  age: number;
  left: number;
  /** Undefined while there is no order. */
  status: Status | undefined;
  /** Of a REFUNDED one. */
  unitsReturned?: boolean;
  atGate: boolean;
  /** Milliseconds since it was marked; undefined when the queue has it. */
  mark: number | undefined;
};
export type Payment = {
  id: string;
  reservationId: string;
  fits: boolean;
  age: number;
  status: 'PARKED' | 'APPLIED' | 'OWED';
};
type ParkedCancel = { reservationId: string; age: number };

export class Model {
  total: number;
  /** What the gate has yet to hear of: units that left the sale. */
  gateBehind = 0;
  price: number;
  holdMs = GRACES.hold;
  paused = false;
  reservations = new Map<string, Reservation>();
  payments = new Map<string, Payment>();
  parkedCancels: ParkedCancel[] = [];

  constructor(total: number, price: number) {
    this.total = total;
    this.price = price;
  }

  all(): Reservation[] {
    return [...this.reservations.values()];
  }

  holderOf(user: string): Reservation | undefined {
    return this.all().find((one) => one.user === user && one.atGate);
  }

  heldUnits(): number {
    return this.all().reduce((sum, { atGate, qty }) => sum + (atGate ? qty : 0), 0);
  }

  /** What a press is to be answered. */
  answer(user: string, qty: number): 'ok' | 'dup' | 'paused' | 'qty_over_limit' | 'sold_out' {
    if (this.holderOf(user)) return 'dup';
    if (this.paused) return 'paused';
    if (qty > MAX_QTY) return 'qty_over_limit';
    return qty > this.total + this.gateBehind - this.heldUnits() ? 'sold_out' : 'ok';
  }

  reserve(id: string, user: string, qty: number): void {
    const terms = { amount: qty * this.price, age: 0, left: this.holdMs, status: undefined, atGate: true, mark: 0 };
    this.reservations.set(id, { id, user, qty, ...terms });
  }

  /** The worker has the message. */
  recorded(id: string): void {
    const one = this.reservations.get(id);
    if (!one) throw new Error(`the queue brought ${id}, which nobody reserved`);
    one.status ??= 'PENDING_PAYMENT';
    if (one.status === 'PENDING_PAYMENT') this.claim(id);
    this.giveBack(one);
  }

  /** Money first, then cancellations. */
  private claim(id: string): void {
    const one = this.reservations.get(id);
    if (one?.status === undefined) return;
    for (const payment of this.payments.values()) {
      if (payment.reservationId === id && payment.status === 'PARKED') this.apply(payment, one);
    }
    if (this.parkedCancels.some(({ reservationId }) => reservationId === id)) this.end(one, 'CANCELLED');
    this.parkedCancels = this.parkedCancels.filter(({ reservationId }) => reservationId !== id);
  }

  private apply(payment: Payment, one: Reservation): void {
    const pays = one.status === 'PENDING_PAYMENT' && payment.fits;
    payment.status = pays ? 'APPLIED' : 'OWED';
    if (pays) one.status = 'PAID';
  }

  /** Ends an order that is unpaid; any other stays what it is. */
  end(one: Reservation, status: 'EXPIRED' | 'CANCELLED'): boolean {
    if (one.status !== 'PENDING_PAYMENT') return false;
    one.status = status;
    return true;
  }

  /** The gate's part of an order that has ended. */
  giveBack(one: Reservation): void {
    if (one.status !== 'EXPIRED' && one.status !== 'CANCELLED' && one.status !== 'REFUNDED') return;
    if (one.status === 'REFUNDED' && one.atGate) this.gateBehind = 0; // the total comes first
    one.atGate = false;
    one.mark = undefined;
  }

  /** The shop gives the money back. @returns what it is answered */
  refund(one: Reservation, returnUnits: boolean): 'refunded' | 'known' | 'not_paid' | 'refunded_otherwise' {
    if (one.status === 'REFUNDED') return one.unitsReturned === returnUnits ? 'known' : 'refunded_otherwise';
    if (one.status !== 'PAID') return 'not_paid';
    one.status = 'REFUNDED';
    one.unitsReturned = returnUnits;
    if (!returnUnits) {
      this.total -= one.qty;
      this.gateBehind += one.qty;
    }
    for (const payment of this.payments.values()) {
      if (payment.reservationId === one.id && payment.status === 'APPLIED') payment.status = 'OWED';
    }
    return 'refunded';
  }

  cancel(id: string): void {
    const one = this.reservations.get(id);
    if (!one) return;
    if (one.status === undefined)
      one.status = 'CANCELLED'; // before the order: written from the hold
    else this.end(one, 'CANCELLED');
  }

  pay(id: string, reservationId: string, fits: boolean, known: boolean): void {
    if (this.payments.has(id)) return;
    const payment: Payment = { id, reservationId, fits, age: 0, status: known ? 'PARKED' : 'OWED' };
    this.payments.set(id, payment);
    const one = this.reservations.get(reservationId);
    if (one?.status !== undefined) this.apply(payment, one);
  }

  /** @returns the order that this ended */
  cancelPayment(paymentId: string, reservationId: string): Reservation | undefined {
    if (this.payments.has(paymentId)) return undefined;
    const one = this.reservations.get(reservationId);
    if (one?.status === undefined) this.parkedCancels.push({ reservationId, age: 0 });
    else if (this.end(one, 'CANCELLED')) return one;
    return undefined;
  }

  passTime(ms: number): void {
    for (const one of this.all()) {
      one.age += ms;
      one.left -= ms;
      if (one.mark !== undefined) one.mark += ms;
    }
    for (const parked of [...this.payments.values(), ...this.parkedCancels]) parked.age += ms;
  }

  expire(): void {
    for (const one of this.all()) if (one.left <= 0) this.end(one, 'EXPIRED');
  }

  giveBackAll(): void {
    for (const one of this.all()) this.giveBack(one);
  }

  /** Holds to be sent again: marked for longer than the grace. Their marks are new. */
  resend(): Reservation[] {
    const due = this.all().filter(({ mark }) => mark !== undefined && mark >= GRACES.mark);
    for (const one of due) one.mark = 0;
    return due;
  }

  /** Holds without an order that are old enough to be lost. */
  lost(): Reservation[] {
    return this.all().filter(({ atGate, status, age }) => atGate && status === undefined && age >= GRACES.lost);
  }

  settleParked(): void {
    const parked = [...this.payments.values()].filter(({ status }) => status === 'PARKED');
    const old = [...parked, ...this.parkedCancels].filter(({ age }) => age >= GRACES.parked);
    const given = new Set(old.map(({ reservationId }) => reservationId));
    for (const { reservationId } of [...parked, ...this.parkedCancels]) {
      const one = this.reservations.get(reservationId);
      const before = one?.status;
      this.claim(reservationId);
      if (one && one.status !== before) this.giveBack(one);
    }
    for (const payment of parked) {
      if (payment.status === 'PARKED' && given.has(payment.reservationId)) payment.status = 'OWED';
    }
    this.parkedCancels = this.parkedCancels.filter(({ reservationId }) => !given.has(reservationId));
  }
}

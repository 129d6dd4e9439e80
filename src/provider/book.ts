/** What the stand-in provider knows of money: payments captured and refunds made. In memory; no I/O. */

export type Outcome = 'succeeded' | 'failed' | 'canceled';
export type Money = { amount: number; currency: string };

/** Amounts in minor units of `currency`. */
export type Payment = Money & {
  paymentId: string;
  reservationId: string;
  status: Outcome;
  captured: number;
  refunded: number;
  createdAt: string;
  /** When the receiver of the webhook first answered 2xx for an event of this payment. */
  deliveredAt: string | null;
};

export type RefundRequest = Money & { refundId: string; paymentId: string; reason: string };
export type Refund = Omit<RefundRequest, 'reason'> & { status: 'succeeded' | 'pending' };

/** A request that the provider refuses: an HTTP status, a code and a sentence. */
export class Refused extends Error {
  status: number;
  code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Book {
  #payments = new Map<string, Payment>();
  #refunds = new Map<string, Refund>();
  #byKey = new Map<string, { request: string; answer: Refund }>();

  /**
   * Records a payment. The same payment again is not made twice; a failed one may be tried again until it succeeds.
   * @throws {Refused} 409 when the id belongs to another payment
   */
  pay(given: Pick<Payment, 'paymentId' | 'reservationId'> & Money & { outcome: Outcome }): {
    payment: Payment;
    isNew: boolean;
  } {
    const { outcome, ...asked } = given;
    const known = this.#payments.get(asked.paymentId);
    if (known && !sameMembers(asked, known)) {
      throw new Refused(409, 'payment_exists', `payment ${asked.paymentId} exists with other contents`);
    }
    if (known && (known.status === outcome || known.status !== 'failed')) return { payment: known, isNew: false };
    const payment: Payment = {
      ...asked,
      status: outcome,
      captured: outcome === 'succeeded' ? asked.amount : 0,
      refunded: 0,
      createdAt: known?.createdAt ?? new Date().toISOString(),
      deliveredAt: known?.deliveredAt ?? null,
    };
    this.#payments.set(payment.paymentId, payment);
    return { payment, isNew: true };
  }

  /**
   * Makes a refund exactly once per idempotency key.
   * @throws {Refused} 404 unknown payment, 409 key or refund id used for something else, 422 more than is left
   */
  refund(key: string, request: RefundRequest, status: Refund['status']): { refund: Refund; isNew: boolean } {
    const text = JSON.stringify([
      request.refundId,
      request.paymentId,
      request.amount,
      request.currency,
      request.reason,
    ]);
    const earlier = this.#byKey.get(key);
    if (earlier && earlier.request !== text) {
      throw new Refused(409, 'idempotency_key_reused', `key ${key} came before with another body`);
    }
    if (earlier) return { refund: earlier.answer, isNew: false };
    if (this.#refunds.has(request.refundId)) {
      throw new Refused(409, 'refund_exists', `refund ${request.refundId} was made under another key`);
    }
    const payment = this.payment(request.paymentId);
    const left = payment.captured - payment.refunded;
    if (request.currency !== payment.currency || request.amount > left) {
      const asked = `${request.amount} ${request.currency}`;
      throw new Refused(422, 'refund_too_large', `${asked} asked back, ${left} ${payment.currency} are left`);
    }
    payment.refunded += request.amount;
    const { reason: _, ...rest } = request;
    this.#refunds.set(request.refundId, { ...rest, status });
    const answer: Refund = { ...rest, status };
    this.#byKey.set(key, { request: text, answer });
    return { refund: answer, isNew: true };
  }

  /** A pending refund has gone through. */
  completeRefund(refundId: string): void {
    this.findRefund(refundId).status = 'succeeded';
  }

  /** @throws {Refused} 404 */
  payment(paymentId: string): Payment {
    const payment = this.#payments.get(paymentId);
    if (!payment) throw new Refused(404, 'payment_not_found', `there is no payment ${paymentId}`);
    return payment;
  }

  /** @throws {Refused} 404 */
  findRefund(refundId: string): Refund {
    const refund = this.#refunds.get(refundId);
    if (!refund) throw new Refused(404, 'refund_not_found', `there is no refund ${refundId}`);
    return refund;
  }

  payments(): Payment[] {
    return [...this.#payments.values()];
  }
}

function sameMembers(asked: Omit<Parameters<Book['pay']>[0], 'outcome'>, known: Payment): boolean {
  return (['reservationId', 'amount', 'currency'] as const).every((member) => asked[member] === known[member]);
}

/**
 * The port to a payment provider: what keeper and API need of one. A second provider is one more file beside http.ts and
 * stripe.ts; what its events look like, and how they are signed, stays in that file.
 */
import type { KnownEvent, RefundStatus } from '../domain/payment.ts';
import type { Hold } from '../domain/reservation.ts';
import type { DueRefund } from '../ledger/refunds.ts';
import { storeFailures } from '../meter.ts';

export type RefundAnswer = { status: RefundStatus; detail: string | null };

/** The provider is away, slow or asks to be left alone for now: it is tried again. Counted where it is made. */
export class ProviderUnavailable extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    storeFailures.inc({ store: 'provider' });
  }
}

/** The provider understood, and will not: asking again is of no use. */
export class ProviderRefused extends Error {}

/** Why an event is not taken. `code` is the problem's name in the HTTP interface. */
export class BadWebhook extends Error {
  readonly code: 'bad_signature' | 'timestamp_out_of_range' | 'malformed_event' | 'wrong_mode';

  constructor(code: BadWebhook['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** A page to be made. `expiresAt` is when the provider closes it by itself, epoch milliseconds; amount in minor units. */
export type PageRequest = Omit<Hold, 'reservedAt'> & { name: string };

/** Pages on which a buyer pays. */
export interface Checkout {
  /** How long from now a page may live, in milliseconds. */
  readonly life: { shortestMs: number; longestMs: number };
  /**
   * Makes the page; asked twice for the same, it is made once.
   * @throws {ProviderUnavailable | ProviderRefused}
   */
  open(page: PageRequest, timeoutMs: number): Promise<{ sessionId: string; url: string }>;
  /** Closes a page, so that nobody can pay on it any more. One that is closed already is no failure. @throws {ProviderUnavailable} */
  close(sessionId: string): Promise<void>;
}

/** Events in the provider's own form. */
export interface ProviderWebhooks {
  readonly path: string;
  /**
   * Checks who sent it, over the bytes as they came, and says it in our words.
   * @returns undefined for an event that means nothing to us
   * @throws {BadWebhook}
   */
  read(body: Buffer, headers: Record<string, string | string[] | undefined>): Promise<KnownEvent | undefined>;
}

export interface PaymentProvider {
  /**
   * Asks for a refund, with the refund's id as idempotency key: asked twice, it is made once.
   * @throws {ProviderUnavailable}
   */
  refund(refund: DueRefund): Promise<RefundAnswer>;
  /**
   * What the provider knows of a refund; undefined when it has never heard of it.
   * @throws {ProviderUnavailable}
   */
  lookUp(refund: Pick<DueRefund, 'refundId' | 'paymentId'>): Promise<RefundAnswer | undefined>;
  /** Missing where the shop makes its own pages. */
  checkout?: Checkout;
  /** Missing where it sends Standard Webhooks. */
  webhooks?: ProviderWebhooks;
}

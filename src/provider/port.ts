/** The port to a payment provider: what the keeper needs of one. A second provider is one more file beside http.ts. */
import type { RefundStatus } from '../domain/payment.ts';
import type { DueRefund } from '../ledger/refunds.ts';
import { storeFailures } from '../meter.ts';

export type RefundAnswer = { status: RefundStatus; detail: string | null };

/** The provider is away, slow or asks to be left alone for now: the refund is tried again. Counted where it is made. */
export class ProviderUnavailable extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    storeFailures.inc({ store: 'provider' });
  }
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
  lookUp(refundId: string): Promise<RefundAnswer | undefined>;
}

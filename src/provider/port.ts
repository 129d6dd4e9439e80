/** The port to a payment provider: what the keeper needs of one. A second provider is one more file beside http.ts. */
import type { RefundStatus } from '../domain/payment.ts';
import type { DueRefund } from '../ledger/refunds.ts';

export type RefundAnswer = { status: RefundStatus; detail: string | null };

/** The provider is away, slow or asks to be left alone for now: the refund is tried again. */
export class ProviderUnavailable extends Error {}

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

/** Pays out the refunds that are owed. The provider is called outside of any transaction, by an idempotency key. */
import { crashPoint } from '../crash.ts';
import { claimRefunds, concludeRefund, type DueRefund } from '../ledger/refunds.ts';
import type { Stores } from '../operations/stores.ts';
import { inSpan, SpanKind } from '../span.ts';
import { ProviderUnavailable, type PaymentProvider, type RefundAnswer } from '../provider/port.ts';

export type RefundOptions = {
  /** First distance between two attempts; longer than one call may take. */
  backoffMs: number;
  /** For how long the provider is sure to know an idempotency key; a retry after that looks the refund up first. */
  keyLifetimeMs: number;
  batch: number;
};

/**
 * One pass. @returns how many refunds came to which status, and how many are to be tried again
 * @throws {LedgerUnavailable} when an answer could not be written down; all others of the pass are
 */
export async function payRefunds(
  stores: Pick<Stores, 'pool' | 'log'>,
  provider: PaymentProvider,
  options: RefundOptions,
) {
  const done = { succeeded: 0, submitted: 0, failed: 0, again: 0 };
  const due = await claimRefunds(stores.pool, options.backoffMs, options.batch);
  if (due.length > 0) crashPoint('refund_claimed');
  const results = await Promise.allSettled(due.map((refund) => payOne(stores, provider, refund, options)));
  for (const result of results) {
    if (result.status === 'rejected') throw result.reason;
    done[result.value] += 1;
  }
  return done;
}

const COUNTED_AS = { PENDING: 'again', SUBMITTED: 'submitted', SUCCEEDED: 'succeeded', FAILED: 'failed' } as const;

async function payOne(
  { pool, log }: Pick<Stores, 'pool' | 'log'>,
  provider: PaymentProvider,
  refund: DueRefund,
  options: RefundOptions,
): Promise<(typeof COUNTED_AS)[keyof typeof COUNTED_AS]> {
  const { refundId, paymentId, attempts } = refund;
  const answer = await ask(provider, refund, options);
  crashPoint('refund_made');
  if (answer instanceof ProviderUnavailable) {
    log.warn({ err: answer, refundId, attempts }, 'a refund is not made yet: it is tried again');
    await concludeRefund(pool, refundId, refund.status, answer.message);
    return 'again';
  }
  if (answer.status === 'FAILED') {
    log.error({ refundId, paymentId, detail: answer.detail }, 'the provider refuses a refund: a person must look');
  }
  await concludeRefund(pool, refundId, answer.status, answer.detail);
  return COUNTED_AS[answer.status];
}

async function ask(
  provider: PaymentProvider,
  refund: DueRefund,
  options: RefundOptions,
): Promise<RefundAnswer | ProviderUnavailable> {
  try {
    const late = refund.status === 'SUBMITTED' || refund.ageMs > options.keyLifetimeMs;
    return await inSpan('provider refund', { kind: SpanKind.CLIENT }, async () => {
      return (late ? await provider.lookUp(refund) : undefined) ?? (await provider.refund(refund));
    });
  } catch (error) {
    if (error instanceof ProviderUnavailable) return error;
    throw error;
  }
}

/** Pays out the refunds that are owed. The provider is called outside of any transaction, by an idempotency key. */
import { crashPoint } from '../crash.ts';
import { claimRefunds, concludeRefund, type DueRefund } from '../ledger/refunds.ts';
import type { Stores } from '../operations/stores.ts';
import { ProviderUnavailable, type PaymentProvider, type RefundAnswer } from '../provider/port.ts';

export type RefundOptions = {
  /** First distance between two attempts; longer than one call may take. */
  backoffMs: number;
  /** For how long the provider is sure to know an idempotency key; a retry after that looks the refund up first. */
  keyLifetimeMs: number;
  batch: number;
};

/** One pass. @returns how many refunds came to which status, and how many are to be tried again */
export async function payRefunds(
  { pool, log }: Pick<Stores, 'pool' | 'log'>,
  provider: PaymentProvider,
  options: RefundOptions,
) {
  const done = { succeeded: 0, submitted: 0, failed: 0, again: 0 };
  const due = await claimRefunds(pool, options.backoffMs, options.batch);
  if (due.length > 0) crashPoint('refund_claimed');
  await Promise.all(
    due.map(async (refund) => {
      const answer = await ask(provider, refund, options);
      crashPoint('refund_made');
      if (answer instanceof ProviderUnavailable) {
        log.warn(
          { err: answer, refundId: refund.refundId, attempts: refund.attempts },
          'a refund is not made yet: it is tried again',
        );
        await concludeRefund(pool, refund.refundId, refund.status, answer.message);
        done.again += 1;
        return;
      }
      if (answer.status === 'FAILED') {
        log.error(
          { refundId: refund.refundId, paymentId: refund.paymentId, detail: answer.detail },
          'the provider refuses a refund: a person must look',
        );
      }
      await concludeRefund(pool, refund.refundId, answer.status, answer.detail);
      done[answer.status === 'SUCCEEDED' ? 'succeeded' : answer.status === 'FAILED' ? 'failed' : 'submitted'] += 1;
    }),
  );
  return done;
}

async function ask(
  provider: PaymentProvider,
  refund: DueRefund,
  options: RefundOptions,
): Promise<RefundAnswer | ProviderUnavailable> {
  try {
    const late = refund.status === 'SUBMITTED' || refund.ageMs > options.keyLifetimeMs;
    return (late ? await provider.lookUp(refund.refundId) : undefined) ?? (await provider.refund(refund));
  } catch (error) {
    if (error instanceof ProviderUnavailable) return error;
    throw error;
  }
}

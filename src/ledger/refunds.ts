/** The outbox of refunds: rows written with the payment that is owed back, paid out by the keeper. */
import type { RefundReason, RefundStatus } from '../domain/payment.ts';
import { query, type Queryable } from './db.ts';

/** A refund to be made. `attempts` counts this one; `ageMs` is since it was first owed. Amount in minor units. */
export type DueRefund = {
  refundId: string;
  paymentId: string;
  amount: number;
  currency: string;
  reason: RefundReason;
  status: RefundStatus;
  attempts: number;
  ageMs: number;
};

// Claimed by moving its next attempt on: nobody else calls meanwhile, and if the caller dies it is tried again.
const CLAIM = {
  name: 'claim-refunds',
  text: `
    update refunds set attempts = attempts + 1, updated_at = now(),
      next_attempt_at = now() + least($1 * 2 ^ least(attempts, 20), 3600000) * interval '1 millisecond'
    where refund_id in (select refund_id from refunds where status in ('PENDING', 'SUBMITTED') and next_attempt_at <= now()
                        order by next_attempt_at limit $2 for update skip locked)
    returning refund_id as "refundId", payment_id as "paymentId", amount, currency, reason, status, attempts,
      (extract(epoch from now() - created_at) * 1000)::bigint as "ageMs"`,
};

/**
 * Takes refunds whose time has come. The next attempt of each doubles in distance, from `backoffMs` to an hour.
 * @param backoffMs longer than one call to the provider may take
 */
export async function claimRefunds(db: Queryable, backoffMs: number, limit: number): Promise<DueRefund[]> {
  return query<DueRefund>(db, CLAIM, [backoffMs, limit]);
}

const CONCLUDE = {
  name: 'conclude-refund',
  text: `update refunds set status = $2, last_error = $3, updated_at = now()
         where refund_id = $1 and status in ('PENDING', 'SUBMITTED')`,
};

/** Writes down what the provider said. What was reported by webhook meanwhile stays. */
export async function concludeRefund(db: Queryable, refundId: string, status: RefundStatus, error: string | null) {
  await query(db, CONCLUDE, [refundId, status, error]);
}

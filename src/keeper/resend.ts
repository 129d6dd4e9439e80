/** Sends again the holds whose mark is older than the grace: their sender died, or the queue did not answer. */
import { fenced } from '../domain/outcomes.ts';
import type { Sale } from '../domain/sale.ts';
import { enqueue } from '../operations/enqueue.ts';
import type { Stores } from '../operations/stores.ts';

export type ResendOptions = { graceMs: number; batch: number; timeoutMs: number };

/**
 * One pass over one sale. The gate hands each hold out once per grace, however many keepers ask.
 * @returns how many were sent again, and how many the queue did not take
 */
export async function resend(
  stores: Stores,
  sale: Sale,
  options: ResendOptions,
  token = '',
): Promise<{ resent: number; failed: number }> {
  const holds = fenced(await stores.gate.unqueued(sale.saleId, options.graceMs, options.batch, token), sale.saleId);
  if (typeof holds === 'string') return { resent: 0, failed: 0 };
  const deadline = performance.now() + options.timeoutMs;
  const results = await Promise.allSettled(holds.map((hold) => enqueue(stores, hold, deadline)));
  for (const { reservationId, saleId } of holds) {
    stores.log.debug({ reservationId, saleId }, 'a hold that was not known to be in the queue is sent again');
  }
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length > 0) {
    stores.log.warn(
      { err: failures[0], saleId: sale.saleId, failed: failures.length },
      'holds could not be sent again: after the grace they are tried anew',
    );
  }
  return { resent: holds.length - failures.length, failed: failures.length };
}

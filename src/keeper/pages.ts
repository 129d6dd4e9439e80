/** Closes the pages of holds that are over, so that nobody pays on them any more. Money that comes all the same is refunded. */
import { crashPoint } from '../crash.ts';
import { claimPages, pagesClosed } from '../ledger/checkout.ts';
import type { Stores } from '../operations/stores.ts';
import { ProviderUnavailable, type Checkout } from '../provider/port.ts';

export type PagesOptions = {
  /** First distance between two attempts; longer than one call may take. */
  backoffMs: number;
  batch: number;
};

/** One pass. @returns how many pages are closed by now, and how many are to be tried again */
export async function closePages(
  { pool, log }: Pick<Stores, 'pool' | 'log'>,
  checkout: Checkout,
  options: PagesOptions,
) {
  const due = await claimPages(pool, options.backoffMs, options.batch);
  const results = await Promise.all(
    due.map(async ({ reservationId, sessionId, attempts }) => {
      try {
        await checkout.close(sessionId);
        return reservationId;
      } catch (error) {
        if (!(error instanceof ProviderUnavailable)) throw error;
        log.warn({ err: error, reservationId, attempts }, 'a page to pay on is not closed yet: it is tried again');
        return undefined;
      }
    }),
  );
  const closed = results.filter((id) => id !== undefined);
  if (closed.length > 0) crashPoint('page_closed');
  await pagesClosed(pool, closed);
  return { closed: closed.length, again: due.length - closed.length };
}

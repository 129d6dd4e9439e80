/** What the keeper looks after in every pass, sale by sale: a lost gate, settings that the gate lacks, marked holds. */
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Sale } from '../domain/sale.ts';
import { markOpened } from '../ledger/sales.ts';
import { applySettings } from '../operations/sales.ts';
import type { Stores } from '../operations/stores.ts';
import { rebuildWhenDrained, type RebuildOptions } from './rebuild.ts';
import { resend, type ResendOptions } from './resend.ts';

export type TendOptions = { resend: ResendOptions; rebuild: RebuildOptions };

/** Since when each lost gate is known to be lost (by `performance.now()`), kept between passes. */
export type LostSince = Map<string, number>;

/** One look at one sale. @returns counts of what was done */
export async function tend(
  stores: Stores,
  sqs: SQSClient,
  sale: Sale,
  options: TendOptions,
  lostSince: LostSince,
  token = '',
): Promise<{ resent: number; failed: number; rebuilt: number; settings: number }> {
  const done = { resent: 0, failed: 0, rebuilt: 0, settings: 0 };
  const figures = await stores.gate.figures(sale.saleId);
  if (!figures) {
    const since = lostSince.get(sale.saleId) ?? performance.now();
    if (!lostSince.has(sale.saleId)) {
      lostSince.set(sale.saleId, since);
      if (sale.openedAt !== null) {
        const fields = { saleId: sale.saleId };
        stores.log.error(fields, 'the gate of this sale is not loaded: it is rebuilt once the queue is empty');
      }
    }
    // Whoever creates a sale also opens it: the keeper steps in only when that is not done after a while.
    if (sale.openedAt === null && performance.now() - since < options.rebuild.drainMs) return done;
    const answer = await rebuildWhenDrained(stores, sqs, sale.saleId, since, options.rebuild, token);
    if (answer === 'draining') return done;
    lostSince.delete(sale.saleId);
    done.rebuilt = answer === 'opened' ? 1 : 0;
    return done;
  }
  lostSince.delete(sale.saleId);
  if (sale.openedAt === null) await markOpened(stores.pool, sale.saleId); // whoever opened it died before this
  if (figures.settings !== sale.settings && (await applySettings(stores, sale.saleId, token))) done.settings = 1;
  return { ...done, ...(await resend(stores, sale, options.resend, token)) };
}

/** The sweeper: unpaid orders whose time is over end in the ledger first, then give back at the gate, then are marked. */
import { StaleToken } from '../domain/outcomes.ts';
import { dueSales, everywhere, expireDue, unreleased, type Scope } from '../ledger/orders.ts';
import { finish, type Finished } from '../operations/finish.ts';
import { sweepLateness } from '../meter.ts';
import type { Stores } from '../operations/stores.ts';

type Three = Pick<Stores, 'pool' | 'gate' | 'log'>;
export type Swept = Finished & { expired: number };

const START = { saleId: '', reservationId: '00000000-0000-0000-0000-000000000000' };

/**
 * One whole pass: everything that ended and was not yet seen to be free at the gate, which is what a keeper that died
 * left half done; then everything that is due. Several at once do no harm: they share the work. What cannot be swept
 * does not keep the rest waiting.
 * @param batch orders per transaction and per script call
 * @throws {StaleToken} at once; any other failure when all else is done
 */
export async function sweep(stores: Three, batch: number, scope: Scope = everywhere): Promise<Swept> {
  const swept = { expired: 0, released: 0, forfeited: 0, waiting: 0 };
  const failures: unknown[] = [];
  const tryTo = async (work: () => Promise<void>, saleId?: string) => {
    try {
      await work();
    } catch (error) {
      if (error instanceof StaleToken) throw error;
      stores.log.error({ err: error, saleId }, 'holds that are due cannot be ended: the others go on');
      failures.push(error);
    }
  };
  await tryTo(() => finishEnded(stores, batch, scope, swept));
  for (const saleId of await dueSales(stores.pool, scope.saleIds)) {
    await tryTo(() => expireSale(stores, batch, { ...scope, saleIds: [saleId] }, swept), saleId);
  }
  if (failures.length > 0) throw failures[0];
  return swept;
}

async function finishEnded(stores: Three, batch: number, scope: Scope, swept: Swept): Promise<void> {
  for (let after = START; ;) {
    const orders = await unreleased(stores.pool, after, batch, scope.saleIds);
    const last = orders.at(-1);
    if (!last) return;
    add(swept, await finish(stores, orders, scope.tokenOf));
    after = last;
  }
}

async function expireSale(stores: Three, batch: number, scope: Scope, swept: Swept): Promise<void> {
  for (;;) {
    const expired = await expireDue(stores.pool, batch, scope);
    if (expired.length === 0) return;
    swept.expired += expired.length;
    for (const { reservationId, saleId, expiresAt } of expired) {
      sweepLateness.observe(Math.max(0, (Date.now() - expiresAt) / 1000));
      stores.log.debug({ reservationId, saleId }, 'an unpaid hold has expired');
    }
    add(swept, await finish(stores, expired, scope.tokenOf));
  }
}

function add(sum: Finished, more: Finished): void {
  sum.released += more.released;
  sum.forfeited += more.forfeited;
  sum.waiting += more.waiting;
}

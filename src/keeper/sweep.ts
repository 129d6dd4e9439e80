/** The sweeper: unpaid orders whose time is over end in the ledger first, then give back at the gate, then are marked. */
import { StaleToken } from '../domain/outcomes.ts';
import { dueSales, everywhere, expireDue, unreleased, type Scope } from '../ledger/orders.ts';
import { finish, type Finished } from '../operations/finish.ts';
import type { Stores } from '../operations/stores.ts';

type Three = Pick<Stores, 'pool' | 'gate' | 'log'>;
export type Swept = Finished & { expired: number };

const START = { saleId: '', reservationId: '00000000-0000-0000-0000-000000000000' };

/**
 * One whole pass: everything that is due, then everything that ended and was not yet seen to be free at the gate.
 * Several at once do no harm: they share the work. A sale that cannot be swept does not keep the others waiting.
 * @param batch orders per transaction and per script call
 * @throws {StaleToken} at once; any other failure when all else is done
 */
export async function sweep(stores: Three, batch: number, scope: Scope = everywhere): Promise<Swept> {
  const swept = { expired: 0, released: 0, forfeited: 0, waiting: 0 };
  const failures: unknown[] = [];
  for (const saleId of await dueSales(stores.pool, scope.saleIds)) {
    try {
      await expireSale(stores, batch, { ...scope, saleIds: [saleId] }, swept);
    } catch (error) {
      if (error instanceof StaleToken) throw error;
      stores.log.error({ err: error, saleId }, 'the holds of a sale that are due cannot be ended: the others go on');
      failures.push(error);
    }
  }
  swept.waiting = 0; // counted again by what follows
  for (let after = START; ;) {
    const orders = await unreleased(stores.pool, after, batch, scope.saleIds);
    const last = orders.at(-1);
    if (!last) break;
    add(swept, await finish(stores, orders, scope.tokenOf));
    after = last;
  }
  if (failures.length > 0) throw failures[0];
  return swept;
}

async function expireSale(stores: Three, batch: number, scope: Scope, swept: Swept): Promise<void> {
  for (;;) {
    const expired = await expireDue(stores.pool, batch, scope);
    if (expired.length === 0) return;
    swept.expired += expired.length;
    add(swept, await finish(stores, expired, scope.tokenOf));
  }
}

function add(sum: Finished, more: Finished): void {
  sum.released += more.released;
  sum.forfeited += more.forfeited;
  sum.waiting += more.waiting;
}

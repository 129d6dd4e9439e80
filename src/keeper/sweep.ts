/** The sweeper: unpaid orders whose time is over end in the ledger first, then give back at the gate, then are marked. */
import { everywhere, expireDue, unreleased, type Scope } from '../ledger/orders.ts';
import { finish, type Finished } from '../operations/finish.ts';
import type { Stores } from '../operations/stores.ts';

export type Swept = Finished & { expired: number };

const START = { saleId: '', reservationId: '00000000-0000-0000-0000-000000000000' };

/**
 * One whole pass: everything that is due, then everything that ended and was not yet seen to be free at the gate.
 * Several at once do no harm: they share the work.
 * @param batch orders per transaction and per script call
 */
export async function sweep(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  batch: number,
  scope: Scope = everywhere,
): Promise<Swept> {
  const swept = { expired: 0, released: 0, forfeited: 0, waiting: 0 };
  for (let more = true; more;) {
    const expired = await expireDue(stores.pool, batch, scope);
    swept.expired += expired.length;
    more = expired.length > 0;
    add(swept, await finish(stores, expired, scope.tokenOf));
  }
  swept.waiting = 0; // counted again by what follows
  for (let after = START; ;) {
    const orders = await unreleased(stores.pool, after, batch, scope.saleIds);
    const last = orders.at(-1);
    if (!last) return swept;
    add(swept, await finish(stores, orders, scope.tokenOf));
    after = last;
  }
}

function add(sum: Finished, more: Finished): void {
  sum.released += more.released;
  sum.forfeited += more.forfeited;
  sum.waiting += more.waiting;
}

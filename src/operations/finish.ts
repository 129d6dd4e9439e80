/** The gate's part of an order that has ended: units given back, or the hold forfeited, then the mark in the ledger. */
import { crashPoint } from '../crash.ts';
import { duty, type Hold, type OrderStatus } from '../domain/reservation.ts';
import { GateUnavailable } from '../gate/gate.ts';
import { markReleased } from '../ledger/orders.ts';
import type { Stores } from './stores.ts';

export type Ended = Pick<Hold, 'reservationId' | 'saleId' | 'userId'> & { status: OrderStatus };
export type Finished = { released: number; forfeited: number; waiting: number };

/**
 * Releases or forfeits the holds of ended orders and marks those that the gate is then seen not to hold. A gate that
 * is not loaded, or away, leaves them waiting for the keeper's next pass. Orders that are still live are left alone.
 * @param token the keeper's; '' for a caller that acts on an order's final status and needs none
 */
export async function finish(
  { pool, gate, log }: Pick<Stores, 'pool' | 'gate' | 'log'>,
  ended: Ended[],
  token = '',
): Promise<Finished> {
  const finished = { released: 0, forfeited: 0, waiting: 0 };
  for (const [key, orders] of Map.groupBy(ended, ({ saleId, status }) => `${duty(status) ?? ''} ${saleId}`)) {
    const [todo, saleId = ''] = key.split(' ');
    if (todo !== 'release' && todo !== 'forfeit') continue;
    crashPoint('order_ended');
    try {
      const answers = await gate[todo](saleId, orders, token);
      if (typeof answers === 'string') {
        finished.waiting += orders.length;
        continue;
      }
      const acted = answers.filter((answer) => answer !== 'not_held').length;
      finished[todo === 'release' ? 'released' : 'forfeited'] += acted;
    } catch (error) {
      if (!(error instanceof GateUnavailable)) throw error;
      log.warn({ err: error, saleId, orders: orders.length }, `the gate cannot ${todo} now: the keeper will`);
      finished.waiting += orders.length;
      continue;
    }
    crashPoint('gate_gave_back');
    await markReleased(
      pool,
      orders.map(({ reservationId }) => reservationId),
    );
  }
  return finished;
}

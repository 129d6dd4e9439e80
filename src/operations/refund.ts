/** The shop gives a paid order's money back: in the ledger, then at the gate; the keeper pays it out, and does what is left. */
import { COMMAND } from '../ledger/journal.ts';
import { refundOrder } from '../ledger/refunding.ts';
import type { Order, Wanted } from '../ledger/orders.ts';
import { finish } from './finish.ts';
import type { Stores } from './stores.ts';

/** Why an order cannot be refunded like that. `code` is the problem's name in the HTTP interface. */
export class RefundConflict extends Error {
  readonly code: 'sale_not_found' | 'reservation_not_found' | 'not_paid' | 'refunded_otherwise' | 'ended';

  constructor(code: RefundConflict['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Refunds a PAID order. Repeatable: asked again for the same, the order is answered as it is.
 * @param returnUnits true: its units are for sale again; false: they leave the sale, and its total, for good
 * @throws {RefundConflict | LedgerUnavailable}
 */
export async function refundReservation(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  wanted: Pick<Wanted, 'saleId' | 'reservationId'>,
  returnUnits: boolean,
  by = COMMAND,
): Promise<Order> {
  const { saleId, reservationId } = wanted;
  const refunding = await refundOrder(stores.pool, wanted, returnUnits, by);
  switch (refunding.outcome) {
    case 'refunded':
      await finish(stores, [refunding.order]);
      return refunding.order;
    case 'known':
      return sameAsAsked(refunding.order, returnUnits);
    case 'sale_not_found':
      throw new RefundConflict('sale_not_found', `there is no sale ${saleId}`);
    case 'reservation_not_found':
      throw new RefundConflict('reservation_not_found', `sale ${saleId} has no order ${reservationId}`);
    case 'sale_closed':
      throw new RefundConflict(
        'ended',
        `sale ${saleId} is closed, nothing of it is sold again: refund with "returnUnits": false`,
      );
  }
}

function sameAsAsked(order: Order, returnUnits: boolean): Order {
  const { reservationId, status, unitsReturned } = order;
  if (status !== 'REFUNDED') {
    throw new RefundConflict('not_paid', `order ${reservationId} is ${status}: only what is PAID can be refunded`);
  }
  if (unitsReturned !== returnUnits) {
    const became = unitsReturned === true ? 'for sale again' : 'out of the sale';
    throw new RefundConflict(
      'refunded_otherwise',
      `order ${reservationId} is refunded already, its units are ${became}`,
    );
  }
  return order;
}

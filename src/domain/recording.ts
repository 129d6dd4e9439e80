/**
 * The ledger's decision about holds that arrive from the queue, as a pure function. The caller has the sales' stock
 * rows locked, so that what is decided here is still true when it is written.
 */
import type { Hold, OrderReason, OrderStatus } from './reservation.ts';

/** What the ledger has: stock of the holds' sales, orders with the holds' ids, live orders of the holds' buyers. */
export type Ledger = {
  stock: Map<string, { total: number; sold: number }>;
  known: Map<string, OrderStatus>;
  /** By sale and buyer, see {@link buyerKey}: the reservation of the live order. */
  live: Map<string, string>;
};

export type NewOrder = Hold & { status: OrderStatus; reason: OrderReason | null; liveReservationId: string | null };

/** `orders` are to be written; `status` is what each hold's order then has; a hold of no sale is in neither. */
export type Decision = { orders: NewOrder[]; status: Map<string, OrderStatus> };

export function buyerKey({ saleId, userId }: Pick<Hold, 'saleId' | 'userId'>): string {
  return `${saleId} ${userId}`;
}

/** Decides in the holds' order, so that what does not fit never takes the place of what does. */
export function decide(holds: Hold[], ledger: Ledger): Decision {
  const status = new Map<string, OrderStatus>();
  const orders: NewOrder[] = [];
  const live = new Map(ledger.live);
  const left = new Map([...ledger.stock].map(([saleId, { total, sold }]) => [saleId, total - sold]));
  for (const hold of holds) {
    const known = ledger.known.get(hold.reservationId) ?? status.get(hold.reservationId);
    const room = left.get(hold.saleId);
    if (known !== undefined) {
      status.set(hold.reservationId, known); // a redelivery
    } else if (room !== undefined) {
      const order = judge(hold, live.get(buyerKey(hold)), room);
      orders.push(order);
      status.set(hold.reservationId, order.status);
      if (order.status === 'PENDING_PAYMENT') {
        left.set(hold.saleId, room - hold.qty);
        live.set(buyerKey(hold), hold.reservationId);
      }
    }
  }
  return { orders, status };
}

function judge(hold: Hold, liveReservationId: string | undefined, room: number): NewOrder {
  if (liveReservationId !== undefined) {
    return { ...hold, status: 'REJECTED', reason: 'duplicate_buyer', liveReservationId };
  }
  if (hold.qty > room) return { ...hold, status: 'REJECTED', reason: 'no_room', liveReservationId: null };
  return { ...hold, status: 'PENDING_PAYMENT', reason: null, liveReservationId: null };
}

/** A buyer's reservation looked up in both stores, and given up. */
import type { Hold } from '../domain/reservation.ts';
import { GateUnavailable } from '../gate/gate.ts';
import { cancel, getOrder, type Order, type Wanted } from '../ledger/orders.ts';
import { finish } from './finish.ts';
import type { Stores } from './stores.ts';

export type Found = Order | (Hold & { status: 'QUEUED' });

/**
 * The buyer's reservation: its order, or its hold as QUEUED. The gate is read first: a hold that is gone by then had an
 * order that ended before, which the ledger then shows. A gate that is away is no matter once there is an order.
 * @throws {GateUnavailable | LedgerUnavailable}
 */
export async function findReservation(
  stores: Pick<Stores, 'pool' | 'gate'>,
  wanted: Wanted,
): Promise<Found | undefined> {
  const hold = await holdOf(stores, wanted);
  const order = await getOrder(stores.pool, wanted);
  if (order) return order;
  if (hold instanceof GateUnavailable) throw hold;
  return hold && { ...hold, status: 'QUEUED' };
}

async function holdOf(
  { gate }: Pick<Stores, 'gate'>,
  { saleId, userId, reservationId }: Wanted,
): Promise<Hold | GateUnavailable | undefined> {
  try {
    const hold = await gate.hold(saleId, userId);
    return hold?.reservationId === reservationId ? hold : undefined;
  } catch (error) {
    if (error instanceof GateUnavailable) return error;
    throw error;
  }
}

/**
 * Gives an unpaid reservation up, also while it is still in the queue. Repeatable.
 * @returns what the reservation is now; undefined when this buyer has none of that id
 * @throws {GateUnavailable | LedgerUnavailable}
 */
export async function cancelReservation(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  wanted: Wanted,
): Promise<Order | undefined> {
  const hold = await holdOf(stores, wanted);
  const order = await cancel(stores.pool, wanted, hold instanceof GateUnavailable ? undefined : hold);
  if (!order && hold instanceof GateUnavailable) throw hold;
  if (order) await finish(stores, [order]);
  return order;
}

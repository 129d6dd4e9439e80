/** What the worker does with holds from the queue: orders in batches, then what each order's status asks for. */
import { crashPoint } from '../crash.ts';
import type { Hold, OrderStatus } from '../domain/reservation.ts';
import { LedgerUnavailable } from '../ledger/db.ts';
import { record } from '../ledger/orders.ts';
import { claimParked } from '../ledger/payments.ts';
import { finish } from '../operations/finish.ts';
import type { Stores } from '../operations/stores.ts';

/**
 * Records holds and acts on the status that each one's order then has: looks for money that came first, gives back or
 * forfeits at the gate what has ended (a redelivery may find its order ended since).
 * @returns per hold its order's status, or the error that keeps its message in the queue
 * @throws {LedgerUnavailable} when nothing is known of any of them
 */
export async function recordHolds(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  holds: Hold[],
): Promise<(OrderStatus | Error)[]> {
  const results = await recordEach(stores, holds);
  crashPoint('recorded');
  const orders = holds.flatMap((hold, n) => {
    const status = results[n];
    return typeof status === 'string' ? [{ ...hold, status }] : [];
  });
  const live = orders.filter(({ status }) => status === 'PENDING_PAYMENT').map(({ reservationId }) => reservationId);
  const claimed = await claimParked(stores.pool, live);
  const refused = orders.filter(({ status }) => status === 'REJECTED');
  for (const { reservationId, saleId } of refused) {
    stores.log.error({ reservationId, saleId }, 'the ledger refused a winner: the gate had promised what is not there');
  }
  const ended = claimed.flatMap((applied) => applied.ended);
  await finish(stores, [...orders, ...ended]);
  return results;
}

/** All in one transaction; if one of them cannot be written, each in its own, so that it fails alone. */
async function recordEach(
  { pool, log }: Pick<Stores, 'pool' | 'log'>,
  holds: Hold[],
): Promise<(OrderStatus | Error)[]> {
  try {
    const status = await record(pool, holds);
    return holds.map(
      ({ reservationId, saleId }) => status.get(reservationId) ?? new Error(`there is no sale ${saleId}`),
    );
  } catch (error) {
    if (error instanceof LedgerUnavailable) throw error;
    if (holds.length === 1) return [error instanceof Error ? error : new Error(String(error))];
    log.error({ err: error, holds: holds.length }, 'a batch cannot be recorded as a whole: each hold goes by itself');
    const results: (OrderStatus | Error)[] = [];
    for (const hold of holds) results.push(...(await recordEach({ pool, log }, [hold])));
    return results;
  }
}

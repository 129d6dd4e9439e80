/** What the worker does with holds from the queue: orders in batches, then what each order's status asks for. */
import pLimit from 'p-limit';
import { crashPoint } from '../crash.ts';
import type { Hold, OrderStatus } from '../domain/reservation.ts';
import { LedgerUnavailable } from '../ledger/db.ts';
import { record } from '../ledger/orders.ts';
import { claimParked } from '../ledger/payments.ts';
import { asLabel, holdsRecorded, orderLag, parkedSettled, recordHolds as batchSize, recordSeconds } from '../meter.ts';
import { finish } from '../operations/finish.ts';
import { inSpan, SpanKind } from '../span.ts';
import type { Stores } from '../operations/stores.ts';

type Three = Pick<Stores, 'pool' | 'gate' | 'log'>;
type Result = OrderStatus | Error;

/** Sales recorded side by side: each takes a connection. */
const SIDE_BY_SIDE = 4;

/**
 * Records holds, each sale's in a transaction of its own: a sale that cannot be recorded now (its row is locked, say)
 * holds up no other, and no sale's row is locked while another's is waited for.
 * @returns per hold its order's status, or the error that keeps its message from being done: LedgerUnavailable when the
 *   cause is not the hold's, and it is to be tried again
 */
export async function recordHolds(stores: Three, holds: Hold[]): Promise<Result[]> {
  const results = new Map<Hold, Result>();
  const limit = pLimit(SIDE_BY_SIDE);
  const sales = [...Map.groupBy(holds, ({ saleId }) => saleId)];
  await Promise.all(
    sales.map(([saleId, own]) =>
      limit(async () => {
        const answers = await recordSale(stores, own).catch((error: unknown) => {
          stores.log.warn({ err: error, saleId, holds: own.length }, 'the holds of a sale cannot be recorded now');
          return own.map(() => asError(error));
        });
        own.forEach((hold, n) => {
          const answer = answers[n];
          if (answer !== undefined) results.set(hold, answer);
        });
      }),
    ),
  );
  return holds.map((hold) => results.get(hold) ?? new Error('the ledger said nothing of this hold'));
}

/**
 * Records one sale's holds and acts on the status that each one's order then has: looks for money that came first, gives
 * back or forfeits at the gate what has ended (a redelivery may find its order ended since).
 */
async function recordSale(stores: Three, holds: Hold[]): Promise<Result[]> {
  const beganAt = performance.now();
  const results = await recordEach(stores, holds);
  crashPoint('recorded');
  recordSeconds.observe((performance.now() - beganAt) / 1000);
  batchSize.observe(holds.length);
  const orders = holds.flatMap((hold, n) => {
    const status = results[n];
    return typeof status === 'string' ? [{ ...hold, status }] : [];
  });
  const live = orders.filter(({ status }) => status === 'PENDING_PAYMENT').map(({ reservationId }) => reservationId);
  const claimed = await claimParked(stores.pool, live);
  for (const { reservationId, saleId, reservedAt, status } of orders) {
    holdsRecorded.inc({ status });
    if (status === 'PENDING_PAYMENT') orderLag.observe(Math.max(0, (Date.now() - reservedAt) / 1000));
    stores.log.debug({ reservationId, saleId, status }, 'a hold is recorded');
  }
  for (const { outcome } of claimed) parkedSettled.inc({ outcome: asLabel(outcome) });
  const refused = orders.filter(({ status }) => status === 'REJECTED');
  for (const { reservationId, saleId } of refused) {
    stores.log.error({ reservationId, saleId }, 'the ledger refused a winner: the gate had promised what is not there');
  }
  const ended = claimed.flatMap((applied) => applied.ended);
  await finish(stores, [...orders, ...ended]);
  return results;
}

/** All in one transaction; if one of them cannot be written, each in its own, so that it fails alone. */
async function recordEach({ pool, log }: Pick<Stores, 'pool' | 'log'>, holds: Hold[]): Promise<Result[]> {
  try {
    const of = { kind: SpanKind.CLIENT, attributes: { 'db.system.name': 'postgresql' } };
    const status = await inSpan('ledger record', of, () => record(pool, holds));
    return holds.map(
      ({ reservationId, saleId }) => status.get(reservationId) ?? new Error(`there is no sale ${saleId}`),
    );
  } catch (error) {
    if (error instanceof LedgerUnavailable) throw error;
    if (holds.length === 1) return [asError(error)];
    log.error({ err: error, holds: holds.length }, 'a batch cannot be recorded as a whole: each hold goes by itself');
    const results: Result[] = [];
    for (const hold of holds) results.push(...(await recordEach({ pool, log }, [hold])));
    return results;
  }
}

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)));

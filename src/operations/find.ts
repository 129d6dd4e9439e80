/** Many buyers' reservations looked up in both stores at once: a statement for all, a call of the gate per sale. */
import { GateUnavailable } from '../gate/gate.ts';
import type { Wanted } from '../ledger/orders.ts';
import { getOrders } from '../ledger/watched.ts';
import type { Found } from './cancel.ts';
import type { Stores } from './stores.ts';

type From = Pick<Stores, 'pool' | 'gate'>;
type Answer = Found | GateUnavailable | undefined;

/**
 * What `findReservation` of cancel.ts finds, for each of them and in their order. An order is never lost again, so the
 * ledger is asked first, and the gate about those alone that have none. If that has not got them either, they may have
 * had an order and lost their hold in between, which the ledger then shows.
 * @returns GateUnavailable for those of which nothing is known without the gate
 * @throws {LedgerUnavailable}
 */
export async function findReservations(stores: From, wanted: Wanted[]): Promise<Answer[]> {
  const found = new Map<Wanted, Answer>();
  const missing = () => wanted.filter((each) => found.get(each) === undefined);
  await fromLedger(stores, wanted, found);
  const bySale = Map.groupBy(missing(), ({ saleId }) => saleId);
  await Promise.all([...bySale].map(([saleId, those]) => fromGate(stores, saleId, those, found)));
  await fromLedger(stores, missing(), found);
  return wanted.map((each) => found.get(each));
}

async function fromLedger({ pool }: From, wanted: Wanted[], found: Map<Wanted, Answer>): Promise<void> {
  if (wanted.length === 0) return;
  const orders = await getOrders(
    pool,
    wanted.map(({ reservationId }) => reservationId),
  );
  for (const each of wanted) {
    const order = orders.get(each.reservationId);
    // Another buyer's is none of theirs.
    if (order?.saleId === each.saleId && order.userId === each.userId) found.set(each, order);
  }
}

async function fromGate({ gate }: From, saleId: string, wanted: Wanted[], found: Map<Wanted, Answer>): Promise<void> {
  try {
    const holds = await gate.holdsOf(
      saleId,
      wanted.map(({ userId }) => userId),
    );
    for (const [n, each] of wanted.entries()) {
      const hold = holds[n];
      if (hold?.reservationId === each.reservationId) found.set(each, { ...hold, status: 'QUEUED' });
    }
  } catch (error) {
    if (!(error instanceof GateUnavailable)) throw error;
    for (const each of wanted) found.set(each, error);
  }
}

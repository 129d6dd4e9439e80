/** The gate's part of an order that has ended: units given back, or the hold forfeited, then the mark in the ledger. */
import { crashPoint } from '../crash.ts';
import { duty, type Duty, type Hold, type OrderStatus } from '../domain/reservation.ts';
import { fenced } from '../domain/outcomes.ts';
import { GateUnavailable } from '../gate/gate.ts';
import { transaction } from '../ledger/db.ts';
import { fence } from '../ledger/fences.ts';
import { markReleased } from '../ledger/orders.ts';
import { holdsFinished } from '../meter.ts';
import { enforceSettings } from './sales.ts';
import { noToken, type Stores, type TokenOf } from './stores.ts';

type Both = Pick<Stores, 'pool' | 'gate' | 'log'>;

export type Ended = Pick<Hold, 'reservationId' | 'saleId' | 'userId'> & { status: OrderStatus };
export type Finished = { released: number; forfeited: number; waiting: number };

/** Holds per script call. */
const CHUNK = 500;

const SCRIPT = { release: 'release', release_after_settings: 'release', forfeit: 'forfeit' } as const;

/**
 * Releases or forfeits the holds of ended orders and marks those that the gate is then seen not to hold. A gate that
 * is not loaded, or away, leaves them waiting for the keeper's next pass. Orders that are still live are left alone.
 * @throws {StaleToken | LedgerUnavailable}
 */
export async function finish(stores: Both, ended: Ended[], tokenOf: TokenOf = noToken): Promise<Finished> {
  const finished = { released: 0, forfeited: 0, waiting: 0 };
  for (const [key, orders] of Map.groupBy(ended, ({ saleId, status }) => `${duty(status) ?? ''} ${saleId}`)) {
    const todo = orders[0] && duty(orders[0].status);
    if (!todo) continue;
    const [, saleId = ''] = key.split(' ');
    for (let n = 0; n < orders.length; n += CHUNK) {
      const chunk = orders.slice(n, n + CHUNK);
      const acted = await giveBack(stores, todo, saleId, chunk, tokenOf(saleId));
      if (acted === undefined) finished.waiting += chunk.length;
      else finished[todo === 'forfeit' ? 'forfeited' : 'released'] += acted;
    }
  }
  return finished;
}

/** @returns how many holds there were to give back; undefined when the gate could not tell */
async function giveBack(
  { pool, gate, log }: Both,
  todo: Duty,
  saleId: string,
  orders: Ended[],
  token: string,
): Promise<number | undefined> {
  crashPoint('order_ended');
  const script = SCRIPT[todo];
  try {
    if (todo === 'release_after_settings') {
      if (!(await enforceSettings({ pool, gate }, saleId, token))) return undefined;
      crashPoint('total_at_gate');
    }
    const answers = fenced(await gate[script](saleId, orders, token), saleId);
    if (typeof answers === 'string') return undefined;
    crashPoint('gate_gave_back');
    await transaction(pool, async (client) => {
      await fence(client, saleId, token);
      await markReleased(
        client,
        orders.map(({ reservationId }) => reservationId),
      );
    });
    const acted = answers.filter((answer) => answer !== 'not_held').length;
    holdsFinished.inc({ how: todo === 'forfeit' ? 'forfeited' : 'released' }, acted);
    orders.forEach(({ reservationId }, n) => {
      log.debug({ reservationId, saleId, answer: answers[n] }, 'the gate gave back');
    });
    return acted;
  } catch (error) {
    if (!(error instanceof GateUnavailable)) throw error;
    log.warn({ err: error, saleId, orders: orders.length }, `the gate cannot ${script} now: the keeper will`);
    return undefined;
  }
}

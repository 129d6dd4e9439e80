/** Opens a sale's gate from the ledger: when the sale is new, and when the gate was lost. */
import { crashPoint } from '../crash.ts';
import { fenced } from '../domain/outcomes.ts';
import type { Hold } from '../domain/reservation.ts';
import { shardOf } from '../domain/shard.ts';
import { transaction } from '../ledger/db.ts';
import { getSale, getSaleLocked, horizonNow, liveHolds, liveHoldsSince, markOpened } from '../ledger/sales.ts';
import { drawToken, fence } from '../ledger/fences.ts';
import type { Stores } from './stores.ts';

/** Orders per script call: a call of this size keeps buyers of other sales waiting for about a millisecond. */
const CHUNK = 500;

/** Draws a token for work on this sale: whoever still works with an older one is refused from then on. */
export function tokenFor(pool: Stores['pool'], saleId: string): Promise<number> {
  return drawToken(pool, shardOf(saleId));
}

/**
 * Loads the gate in three steps: begin, chunks of live orders, open. Most are read without a lock; those that changed
 * meanwhile are read again while the sale is locked, so that the gate opens with exactly what the ledger has.
 * Restartable: whoever comes after a loader that died begins anew.
 * @returns 'live' when there is a gate already: nothing was done
 * @throws {StaleToken} when a newer token has taken over
 */
export async function openGate(
  { pool, gate }: Pick<Stores, 'pool' | 'gate'>,
  saleId: string,
  token: number,
): Promise<'opened' | 'live'> {
  await mustBeOpenable(pool, saleId);
  const horizon = await horizonNow(pool);
  const begun = fenced(await gate.begin(saleId, token), saleId);
  if (begun === 'live') {
    await markOpened(pool, saleId); // whoever opened it may have died before this
    return 'live';
  }
  crashPoint('rebuild_begun');
  const load = async (holds: Hold[]) => {
    fenced(await gate.chunk(saleId, holds, token), saleId);
    crashPoint('rebuild_loaded');
  };
  for (let after = ''; ;) {
    const holds = await liveHolds(pool, saleId, after, CHUNK);
    if (holds.length === 0) break;
    await load(holds);
    after = holds.at(-1)?.userId ?? '';
  }
  return transaction(pool, async (client): Promise<'opened'> => {
    const sale = await getSaleLocked(client, saleId);
    if (sale?.state === 'closed') await gate.remove(saleId); // closed since we began: nothing of it may stay
    if (!sale || sale.state === 'closed') throw new Error(`there is no open sale ${saleId}`);
    const changed = await liveHoldsSince(client, saleId, horizon);
    for (let n = 0; n < changed.length; n += CHUNK) await load(changed.slice(n, n + CHUNK));
    await fence(client, saleId, String(token));
    fenced(await gate.open(sale, token), saleId);
    crashPoint('rebuild_opened');
    await markOpened(client, saleId);
    return 'opened';
  });
}

async function mustBeOpenable(pool: Stores['pool'], saleId: string): Promise<void> {
  const sale = await getSale(pool, saleId);
  if (!sale) throw new Error(`there is no sale ${saleId}`);
  if (sale.state === 'closed') throw new Error(`sale ${saleId} is closed: it has no gate any more`);
}

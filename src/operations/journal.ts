/** What an admin tried and did not get is in the journal too. What was done is written by what does it. */
import { LedgerUnavailable } from '../ledger/db.ts';
import { writeJournal, type Actor, type JournalAction, type Subject } from '../ledger/journal.ts';
import { EndpointConflict } from './endpoints.ts';
import { RefundConflict } from './refund.ts';
import { SaleConflict } from './sales.ts';
import type { Stores } from './stores.ts';

/**
 * Does `work`; should it throw, writes so into the journal and throws it on. `failed`, other than `refused`, leaves open
 * what became of it: an entry `done` of the same request says that the ledger has the change all the same.
 */
export async function attempted<T>(
  { pool, log }: Pick<Stores, 'pool' | 'log'>,
  by: Actor,
  what: Subject & { action: JournalAction },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const conflict = isConflict(error);
    // A gate that is not loaded may be seen after the ledger was changed.
    const refused = conflict && error.code !== 'gate_not_loaded';
    const reason = `${conflict ? `${error.code}: ` : ''}${error instanceof Error ? error.message : String(error)}`;
    const note = { ...what, before: null, after: null };
    // Without the ledger there is nothing to write it in; the log has it.
    const written =
      error instanceof LedgerUnavailable
        ? Promise.reject(error)
        : writeJournal(pool, by, note, { outcome: refused ? 'refused' : 'failed', reason });
    await written.catch((err: unknown) => {
      log.warn({ err, requestId: by.requestId, ...what, reason }, 'the journal lacks what an admin tried');
    });
    throw error;
  }
}

const CONFLICTS = [SaleConflict, RefundConflict, EndpointConflict];
const isConflict = (error: unknown): error is InstanceType<(typeof CONFLICTS)[number]> =>
  CONFLICTS.some((kind) => error instanceof kind);

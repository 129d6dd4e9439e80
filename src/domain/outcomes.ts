/** What the gate can answer. Pure: no I/O. */
import type { Hold } from './reservation.ts';

/** Why the gate refuses, in the precedence in which it looks (its holder's own `dup` comes right after not_loaded). */
export type Refusal = 'not_loaded' | 'loading' | 'paused' | 'not_started' | 'ended' | 'qty_over_limit' | 'sold_out';

/** `queued` tells whether the queue has the hold for sure; if not, it is to be sent before the buyer is told anything. */
export type Outcome =
  { outcome: 'ok'; hold: Hold } | { outcome: 'dup'; hold: Hold; queued: boolean } | { outcome: Refusal };

/** A newer token was drawn: somebody else looks after this shard. Drop the lease, claim anew. */
export class StaleToken extends Error {}

/** Takes 'stale' out of what a gate script can answer. @throws {StaleToken} */
export function fenced<T>(answer: T, saleId: string): Exclude<T, 'stale'> {
  if (answer === 'stale') throw new StaleToken(`sale ${saleId}: the gate has seen a newer token`);
  return answer as Exclude<T, 'stale'>;
}

/** Why a gate script did nothing at all. */
export type Absent = 'not_loaded' | 'loading' | 'stale';

/** What the gate can answer. Pure: no I/O. */
import type { Hold } from './reservation.ts';

/** Why the gate refuses, in the precedence in which it looks (its holder's own `dup` comes right after not_loaded). */
export type Refusal = 'not_loaded' | 'loading' | 'paused' | 'not_started' | 'ended' | 'qty_over_limit' | 'sold_out';

/** `queued` tells whether the queue has the hold for sure; if not, it is to be sent before the buyer is told anything. */
export type Outcome =
  { outcome: 'ok'; hold: Hold } | { outcome: 'dup'; hold: Hold; queued: boolean } | { outcome: Refusal };

/** Why a gate script did nothing at all. */
export type Absent = 'not_loaded' | 'loading' | 'stale';

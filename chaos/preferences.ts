/**
 * Preferences for a run: what to do more often than chance would. They make one kind of defect easier to find and leave
 * every check as strict as it is.
 */
import type { FateWeights } from './plan.ts';
import type { Refrain } from './script.ts';

export type Preference = {
  says: string;
  /** Faults that come again and again, instead of all kinds in turn. */
  refrain?: Refrain;
  fates?: Partial<FateWeights>;
  losesGate?: boolean;
  env?: Record<string, string>;
};

const all = {
  'late-releases': {
    says: 'buyers give up, come again, and press Cancel of the old reservation once more; the gate keeps its word',
    fates: { cancel: 60, abandon: 30 },
    losesGate: false,
  },
  'lost-messages': {
    says: 'the workers cannot reach the ledger, then are killed, and Redis loses everything in the midst of it',
    refrain: [
      { kind: 'cut-postgres', target: 'worker-1 postgres', how: 'both ways', forMs: 3000, afterMs: 4000 },
      { kind: 'cut-postgres', target: 'worker-2 postgres', how: 'both ways', forMs: 3000, afterMs: 20 },
      { kind: 'redis-empty', forMs: 300, afterMs: 1800 },
      { kind: 'kill-worker', target: 'worker-1', forMs: 100, afterMs: 300 },
      { kind: 'kill-worker', target: 'worker-2', forMs: 100, afterMs: 20 },
    ],
    losesGate: true,
  },
  'slow-keepers': {
    says: 'keepers take long to look at the gate while buyers give up; the gate keeps its word',
    refrain: [
      { kind: 'slow-redis', target: 'keeper-1 redis', how: '90 ms', forMs: 9000, afterMs: 500 },
      { kind: 'slow-redis', target: 'keeper-2 redis', how: '90 ms', forMs: 9000, afterMs: 20 },
      { kind: 'restart-worker', afterMs: 9500 },
    ],
    fates: { cancel: 90, cancelAndPay: 30 },
    losesGate: false,
    env: { RECONCILE_INTERVAL_MS: '100' },
  },
} satisfies Record<string, Preference>;
export type PreferenceName = keyof typeof all;
export const PREFERENCES: Record<PreferenceName, Preference> = all;

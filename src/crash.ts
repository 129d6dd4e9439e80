/**
 * Crash points: a name between every two steps of the walk, at which a test ends the process with SIGKILL, to show that
 * what is left is repaired. Outside of such a test each is a call of an empty function.
 */

export const crashPoints = [
  'gate_decided', // a hold at the gate; the queue has not heard of it
  'queue_has_it', // the mark is still there, the buyer was not told
  'recorded', // the order is committed; parked money not looked for, nothing acknowledged
  'before_acknowledge', // the order is committed and acted upon; the message will come again
  'event_applied', // the payment event is committed; the provider was not answered
  'order_ended', // EXPIRED, CANCELLED, REJECTED or REFUNDED is committed; the gate still holds it
  'total_at_gate', // the gate has the total of a sale from which a refund took units; it still holds them
  'gate_gave_back', // the gate released or forfeited it; the ledger has no mark of it
  'refund_claimed', // about to call the provider
  'refund_made', // the provider has refunded; the ledger does not know
  'page_closed', // the provider has closed a page to pay on; the ledger does not know
  'webhook_claimed', // about to call an endpoint of the shop
  'webhook_answered', // the shop has answered; the ledger does not know
  'rebuild_begun', // the gate is loading, empty
  'rebuild_loaded', // the gate is loading, with its first holds
  'rebuild_opened', // the gate is open; the ledger has no mark of it
  'adopted', // the gate has the adopted holds; their rows are still locked
  'settings_in_ledger', // the ledger has new settings, the gate the old ones
  'settings_at_gate', // the gate has shrunk, the ledger has not
] as const;
export type CrashPoint = (typeof crashPoints)[number];

const wanted = process.env.NODE_ENV === 'test' ? process.env.CRASH_AT : undefined;
if (wanted !== undefined && !(crashPoints as readonly string[]).includes(wanted)) {
  throw new Error(`CRASH_AT=${wanted} is no crash point: ${crashPoints.join(', ')}`);
}

export const crashPoint: (name: CrashPoint) => void =
  wanted === undefined
    ? () => undefined
    : (name) => {
        if (name === wanted) process.kill(process.pid, 'SIGKILL');
      };

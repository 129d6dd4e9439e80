/**
 * The arrows of the walk, what is left when a process dies or a reply is lost there, and who repairs it: one row per
 * test, which is described by the row's name and fails when the repair named here is taken out.
 */
export type Arrow = {
  /** What dies, or is lost. */
  when: string;
  left: string;
  repair: string;
  /** The test file that cuts exactly there. */
  test: string;
};

export const arrows = {
  beforeTheQueue: {
    when: 'after reserve.lua, before the queue has it',
    left: 'a marked hold with no order',
    repair: 'http/reserve.ts sends what `dup` finds marked; keeper/resend.ts sends it after the grace, once per grace',
    test: 'queue.test.ts',
  },
  queueAnswersLate: {
    when: 'the queue answers late or not at all',
    left: 'maybe a message, maybe not',
    repair: 'the same; domain/recording.ts: a known id is one order',
    test: 'queue.test.ts',
  },
  queueLosesEverything: {
    when: 'the queue loses everything',
    left: 'unmarked holds with no orders',
    repair: 'keeper/reconcile.ts: the full pass scans holds, whatever their marks say',
    test: 'queue.test.ts',
  },
  workerBeforeAcknowledgement: {
    when: 'worker after commit, before the acknowledgement',
    left: 'a redelivery',
    repair: 'domain/recording.ts: the primary key; worker/record.ts acts on the status that the order has by now',
    test: 'queue.test.ts',
  },
  workerBeforeForfeit: {
    when: 'worker after REJECTED, before forfeit',
    left: 'a finished order that still holds',
    repair: 'keeper/sweep.ts: what is not marked is given back; keeper/reconcile.ts: also what is marked',
    test: 'queue.test.ts',
  },
  gateAndQueueLose: {
    when: 'gate and queue lose the same winner',
    left: 'no trace anywhere',
    repair: 'nobody: the buyer is told 404 reservation_not_found, and may win again',
    test: 'queue.test.ts',
  },
  sweeperBeforeRelease: {
    when: 'sweeper after commit, before release.lua',
    left: 'EXPIRED, not released',
    repair:
      'keeper/sweep.ts retries until gate_released_at is set; operations/finish.ts sets it only for a loaded gate',
    test: 'release.test.ts',
  },
  failedOver: {
    when: 'Redis fails over and forgets the last writes',
    left: 'live orders without holds; released holds back again; a gate too generous; old settings',
    repair:
      'keeper/reconcile.ts adopts, drops, settles; worker/record.ts forfeits the surplus; keeper/tend.ts re-applies settings',
    test: 'failover.test.ts',
  },
  adoptedTooLate: {
    when: 'adopting what has just expired',
    left: 'a hold of a finished order',
    repair: 'keeper/reconcile.ts holds the rows (FOR SHARE) and re-checks them around adopt.lua',
    test: 'adopting.test.ts',
  },
  redisEmpty: {
    when: 'Redis comes back empty',
    left: 'not_loaded',
    repair: 'keeper/rebuild.ts after a bounded wait for the queue; operations/open.ts begins, loads, opens, by token',
    test: 'rebuild.test.ts',
  },
  postgresAway: {
    when: 'Postgres is away',
    left: 'the queue grows, the gate keeps deciding',
    repair: 'worker/worker.ts does not receive and resumes; nothing is acknowledged early',
    test: 'postgres.test.ts',
  },
  keeperWakesUp: {
    when: 'the keeper freezes and wakes up later',
    left: 'a stale owner',
    repair: 'ledger/fences.ts and the gate’s scripts refuse its token; keeper/leases.ts lets the lease go',
    test: 'stale.test.ts',
  },
} as const satisfies Record<string, Arrow>;

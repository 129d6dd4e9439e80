/**
 * What happens in a process, counted where it happens. Names and units as Prometheus asks for: base units, `_total`; no
 * buyer, no reservation and no sale in a label, since nothing bounds their number. Registered by src/metrics.ts.
 */
import { Counter, Gauge, Histogram } from 'prom-client';

const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
  new Counter({ name, help, labelNames, registers: [] });
const histogram = (name: string, help: string, buckets: number[]) =>
  new Histogram({ name, help, buckets, registers: [] });

const SHORT = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5];
const LONG = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LATE = [0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** In every process. */
export const storeFailures = counter(
  'flashgate_store_failures_total',
  'Calls that a store, or the payment provider, did not answer well or in time',
  ['store'],
);
export const holdsFinished = counter(
  'flashgate_holds_finished_total',
  'Holds of ended orders given back to the stock (released) or taken away without it (forfeited)',
  ['how'],
);
export const parkedSettled = counter(
  'flashgate_parked_settled_total',
  'Payment events that had waited for their order, by what became of them',
  ['outcome'],
);

/** In the API. */
export const gateCallSeconds = histogram(
  'flashgate_gate_call_seconds',
  'Duration of a call of the reserve script',
  SHORT,
);
export const gateCallBuyers = histogram(
  'flashgate_gate_call_buyers',
  'Buyers decided by one call of the reserve script',
  SIZES,
);
export const paymentEvents = counter(
  'flashgate_payment_events_total',
  'Signed events of the payment provider, by type and by what they did',
  ['type', 'outcome'],
);

export const eventStreams = new Gauge({
  name: 'flashgate_event_streams',
  help: 'Event streams that are open, by what they tell of',
  labelNames: ['kind'],
  registers: [],
});

/** In the worker. */
export const orderLag = histogram(
  'flashgate_order_lag_seconds',
  'From a hold at the gate (its clock) to its order in the ledger (this machine’s clock)',
  LONG,
);
export const messageAge = histogram(
  'flashgate_message_age_seconds',
  'From when the queue took a message until a worker received it',
  LONG,
);
export const messagesNotDone = counter(
  'flashgate_messages_not_done_total',
  'Receives of a message that ended without its being done: it comes again, or is put aside',
);
export const recordSeconds = histogram('flashgate_record_seconds', 'Duration of recording a batch of holds', LONG);
export const recordHolds = histogram('flashgate_record_holds', 'Holds recorded in one batch', SIZES);
export const holdsRecorded = counter(
  'flashgate_holds_recorded_total',
  'Holds from the queue, by the status that their order then had; redeliveries count again',
  ['status'],
);

/** In the keeper. */
export const sweepLateness = histogram(
  'flashgate_sweep_lateness_seconds',
  'How long after its deadline an unpaid order was expired, by this machine’s clock',
  LATE,
);
export const keeperPassSeconds = histogram('flashgate_keeper_pass_seconds', 'Duration of a pass of the keeper', LONG);
export const keeperLastPass = new Gauge({
  name: 'flashgate_keeper_last_pass_timestamp_seconds',
  help: 'When the last pass ended, Unix time',
  registers: [],
});
export const keeperDone = counter(
  'flashgate_keeper_done_total',
  'What the keeper did, by part of its pass: the same counts as in its log',
  ['part', 'what'],
);
export const keeperFailures = counter(
  'flashgate_keeper_failures_total',
  'Parts of a pass that failed and are tried again by the next',
  ['part'],
);
export const leasesLost = counter('flashgate_leases_lost_total', 'Leases that were let go against the keeper’s will', [
  'why',
]);

/** By kind of process; `all` is in each of them. */
export const meters = {
  all: [storeFailures, holdsFinished, parkedSettled],
  api: [gateCallSeconds, gateCallBuyers, paymentEvents, eventStreams],
  worker: [orderLag, messageAge, messagesNotDone, recordSeconds, recordHolds, holdsRecorded],
  keeper: [sweepLateness, keeperPassSeconds, keeperLastPass, keeperDone, keeperFailures, leasesLost],
};

/** An outcome in words as a label's value: `refund_owed: expired` is `refund_owed_expired`. */
export const asLabel = (words: string) => words.toLowerCase().replaceAll(/\W+/g, '_');

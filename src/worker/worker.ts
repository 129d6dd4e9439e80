/**
 * The worker: receives from the queue with several long polls at once, gathers what they bring into one transaction,
 * and acknowledges exactly what is done. While the ledger is away it does not receive, and keeps what it has received,
 * hidden from others: so no message uses up its receives and lands in the dead-letter queue for nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';
import { Batcher, TooLate } from '../batcher.ts';
import { crashPoint } from '../crash.ts';
import type { Hold, OrderStatus } from '../domain/reservation.ts';
import { LedgerUnavailable } from '../ledger/db.ts';
import type { Stores } from '../operations/stores.ts';
import { parseMessage } from '../queue/message.ts';
import { recordHolds } from './record.ts';

export type WorkerOptions = {
  queueUrl: string;
  /** Long polls at once, each for up to ten messages. */
  receivers: number;
  /** Holds per transaction at most. */
  batch: number;
  waitSeconds: number;
  visibilitySeconds: number;
  /** Told, for each order that is recorded, how long ago its hold was won: seconds, by this machine's clock. */
  onRecorded?: (seconds: number) => void;
};

/** How long a message that could not be recorded stays invisible, in seconds: time for the cause to pass. */
const BACK_OFF_SECONDS = 2;
const PROBE_EVERY_MS = 500;
const QUEUE_AGAIN_MS = 1000;
const LONGEST_PAUSE_MS = 5000;

type Worker = { stop: () => Promise<void> };

export function startWorker(stores: Stores, sqs: SQSClient, options: WorkerOptions): Worker {
  const stopping = new AbortController();
  const recorder = new Batcher<Hold, OrderStatus>({
    call: async (holds) => {
      const results = await recordHolds(stores, holds);
      holds.forEach(({ reservedAt }, n) => {
        if (results[n] === 'PENDING_PAYMENT') options.onRecorded?.((Date.now() - reservedAt) / 1000);
      });
      return results;
    },
    size: options.batch,
    inFlight: 2,
    pending: options.receivers * 10,
    timeoutMs: options.visibilitySeconds * 1000,
  });
  const consumers = Array.from({ length: options.receivers }, () => {
    let failures = 0; // receives that failed in a row
    const consumer = Consumer.create({
      queueUrl: options.queueUrl,
      sqs,
      batchSize: 10,
      waitTimeSeconds: options.waitSeconds,
      visibilityTimeout: options.visibilitySeconds,
      heartbeatInterval: options.visibilitySeconds / 3,
      // Also after "no such queue", as one that comes up may answer: the library's ten seconds are more than winners wait.
      authenticationErrorTimeout: QUEUE_AGAIN_MS,
      terminateVisibilityTimeout: BACK_OFF_SECONDS,
      pollingCompleteWaitTimeMs: (options.waitSeconds + options.visibilitySeconds) * 1000,
      preReceiveMessageCallback: async () => {
        if (failures > 0)
          await pause(Math.min(PROBE_EVERY_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS), stopping.signal);
        await ledgerIsThere(stores, stopping.signal);
      },
      handleMessageBatch: (messages) =>
        handle(stores, messages, (hold) => keepTrying(recorder, hold, options.visibilitySeconds, stopping.signal)),
    });
    for (const good of ['response_processed', 'empty'] as const) consumer.on(good, () => (failures = 0));
    consumer.on('error', (error, messages) => {
      if (stopping.signal.aborted && error.message.includes(STOPPING)) return;
      if (messages === undefined) failures += 1;
      stores.log.warn({ err: error }, 'the queue: a receive, a delete or a batch failed; it is tried again');
    });
    consumer.start();
    return consumer;
  });
  return {
    /** Receives no more, finishes what was received, resolves when all of it is acknowledged or back in the queue. */
    stop: async () => {
      stopping.abort();
      await Promise.all(
        consumers.map(async (consumer) => {
          consumer.stop();
          while (consumer.status.isPolling) await sleep(20);
        }),
      );
      await recorder.drained();
    },
  };
}

/** Tries again while the cause is the ledger's and not the hold's; until then its message stays in hand. */
async function keepTrying(
  recorder: Batcher<Hold, OrderStatus>,
  hold: Hold,
  visibilitySeconds: number,
  stopping: AbortSignal,
): Promise<OrderStatus> {
  for (let pauseMs = PROBE_EVERY_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await recorder.add(hold, performance.now() + visibilitySeconds * 500);
    } catch (error) {
      if (stopping.aborted || !(error instanceof LedgerUnavailable || error instanceof TooLate)) throw error;
      await pause(pauseMs, stopping);
    }
  }
}

/** @returns the messages that are done */
async function handle(
  { log }: Pick<Stores, 'log'>,
  messages: Message[],
  record: (hold: Hold) => Promise<OrderStatus>,
): Promise<Message[]> {
  const results = await Promise.allSettled(messages.map(async (message) => record(parseMessage(message.Body))));
  const done = messages.filter((_, n) => results[n]?.status === 'fulfilled');
  const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  for (const reason of reasons) log.error({ err: reason }, 'a message is not done and stays in the queue');
  // Thrown only when none is done, so that their visibility is shortened; otherwise the rest comes again by itself.
  if (done.length === 0) throw new Error('no message of this receive is done', { cause: reasons[0] });
  crashPoint('before_acknowledge');
  return done;
}

/** Ends early when stopping. */
async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopping }).catch(() => undefined); // rejects for that alone
}

const STOPPING = 'the worker is stopping';

async function ledgerIsThere({ pool, log }: Pick<Stores, 'pool' | 'log'>, stopping: AbortSignal): Promise<void> {
  for (let failures = 0; ; failures += 1) {
    if (stopping.aborted) throw new Error(STOPPING);
    try {
      await pool.query('select 1');
      if (failures > 0) log.info({ failures }, 'the ledger is back: receiving again');
      return;
    } catch (error) {
      if (failures === 0) log.warn({ err: error }, 'the ledger is away: no message is received until it is back');
      await sleep(PROBE_EVERY_MS);
    }
  }
}

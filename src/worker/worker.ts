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
import { messageAge, messagesNotDone, storeFailures } from '../meter.ts';
import type { Stores } from '../operations/stores.ts';
import { contextInAttributes, parseMessage } from '../queue/message.ts';
import { CONTEXT_FIELDS, contextFrom, contextOf, inSpan, isTracing, SpanKind, type Span } from '../span.ts';
import { recordHolds } from './record.ts';

export type WorkerOptions = {
  queueUrl: string;
  /** Long polls at once, each for up to ten messages. */
  receivers: number;
  /** Holds per transaction at most. */
  batch: number;
  waitSeconds: number;
  visibilitySeconds: number;
};

/** How long a message that could not be recorded stays invisible, in seconds: time for the cause to pass. */
const BACK_OFF_SECONDS = 2;
const PROBE_EVERY_MS = 500;
const QUEUE_AGAIN_MS = 1000;
const LONGEST_PAUSE_MS = 5000;

type Worker = { stop: () => Promise<void> };
/** A hold from the queue, and the span in which it is processed, if one is made. */
type Received = { hold: Hold; span: Span | undefined };

export function startWorker(stores: Stores, sqs: SQSClient, options: WorkerOptions): Worker {
  const stopping = new AbortController();
  const recorder = new Batcher<Received, OrderStatus>({
    call: (received) => recordReceived(stores, received),
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
      messageSystemAttributeNames: ['SentTimestamp'],
      ...(isTracing() && { messageAttributeNames: [...CONTEXT_FIELDS] }),
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
        handle(stores, messages, (received) =>
          keepTrying(recorder, received, options.visibilitySeconds, stopping.signal),
        ),
    });
    for (const good of ['response_processed', 'empty'] as const) consumer.on(good, () => (failures = 0));
    consumer.on('error', (error, messages) => {
      if (stopping.signal.aborted && error.message.includes(STOPPING)) return;
      if (messages === undefined) {
        failures += 1;
        storeFailures.inc({ store: 'queue' });
      }
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
  recorder: Batcher<Received, OrderStatus>,
  received: Received,
  visibilitySeconds: number,
  stopping: AbortSignal,
): Promise<OrderStatus> {
  for (let pauseMs = PROBE_EVERY_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await recorder.add(received, performance.now() + visibilitySeconds * 500);
    } catch (error) {
      if (stopping.aborted || !(error instanceof LedgerUnavailable || error instanceof TooLate)) throw error;
      await pause(pauseMs, stopping);
    }
  }
}

/**
 * One transaction for many messages. Its span is a child of the only message's, or has a link to each, and each to it:
 * no trace of one press is filled with the others'.
 */
function recordReceived(stores: Stores, received: Received[]): Promise<(OrderStatus | Error)[]> {
  const spans = received.flatMap(({ span }) => span ?? []);
  const [only, ...others] = spans;
  const alone = only !== undefined && others.length === 0 && received.length === 1;
  const of = {
    parent: alone ? contextOf(only) : contextFrom({}),
    links: alone ? [] : spans.map((span) => ({ context: span.spanContext() })),
    attributes: { 'messaging.batch.message_count': received.length },
  };
  return inSpan('record orders', of, (batch) => {
    if (batch && !alone) for (const span of spans) span.addLink({ context: batch.spanContext() });
    return recordHolds(
      stores,
      received.map(({ hold }) => hold),
    );
  });
}

/** In a span of the trace that the message brought, which is the press'. */
async function processMessage(
  message: Message,
  record: (received: Received) => Promise<OrderStatus>,
): Promise<OrderStatus> {
  const hold = parseMessage(message.Body);
  const attributes = {
    ...{ 'messaging.system': 'aws_sqs', 'messaging.operation.type': 'process' },
    ...{ 'flashgate.reservation_id': hold.reservationId, 'flashgate.sale_id': hold.saleId },
  };
  const parent = contextFrom(contextInAttributes(message.MessageAttributes));
  return inSpan('process hold', { kind: SpanKind.CONSUMER, attributes, parent }, async (span) => {
    const status = await record({ hold, span });
    span?.setAttribute('flashgate.status', status);
    return status;
  });
}

/** @returns the messages that are done */
async function handle(
  { log }: Pick<Stores, 'log'>,
  messages: Message[],
  record: (received: Received) => Promise<OrderStatus>,
): Promise<Message[]> {
  for (const { Attributes } of messages) {
    const sentAt = Number(Attributes?.SentTimestamp);
    if (sentAt > 0) messageAge.observe(Math.max(0, (Date.now() - sentAt) / 1000));
  }
  const results = await Promise.allSettled(messages.map((message) => processMessage(message, record)));
  const done = messages.filter((_, n) => results[n]?.status === 'fulfilled');
  const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  messagesNotDone.inc(reasons.length);
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
      storeFailures.inc({ store: 'postgres' });
      if (failures === 0) log.warn({ err: error }, 'the ledger is away: no message is received until it is back');
      await sleep(PROBE_EVERY_MS);
    }
  }
}

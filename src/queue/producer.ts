/** Sends holds to the queue, ten to a call, each entry judged by its own result. */
import { SendMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { Batcher } from '../batcher.ts';
import type { Hold } from '../domain/reservation.ts';
import { storeFailures } from '../meter.ts';
import { presentContext, type Carrier } from '../span.ts';
import { contextAttributes, formatMessage } from './message.ts';

/** The queue did not say that it has the message. It may have it all the same. Counted where it is made. */
export class QueueUnavailable extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    storeFailures.inc({ store: 'queue' });
  }
}

/** What SQS takes in one call. */
const ENTRIES = 10;

export type ProducerOptions = { queueUrl: string; timeoutMs: number; inFlight: number; pending: number };

/** `context`: the trace that goes with the message, beside its body. */
type Sending = { hold: Hold; context: Carrier | undefined };

export class Producer {
  #batcher: Batcher<Sending, undefined>;

  constructor(sqs: SQSClient, options: ProducerOptions) {
    this.#batcher = new Batcher({
      call: (batch, timeoutMs) => send(sqs, options.queueUrl, batch, timeoutMs),
      size: ENTRIES,
      inFlight: options.inFlight,
      pending: options.pending,
      timeoutMs: options.timeoutMs,
    });
  }

  /**
   * Resolves once the queue has the hold.
   * @param deadline by `performance.now()`
   * @throws {QueueUnavailable | Overloaded | TooLate}
   */
  async send(hold: Hold, deadline: number): Promise<void> {
    await this.#batcher.add({ hold, context: presentContext() }, deadline);
  }

  drained(): Promise<void> {
    return this.#batcher.drained();
  }
}

async function send(sqs: SQSClient, queueUrl: string, batch: Sending[], timeoutMs: number) {
  const command = new SendMessageBatchCommand({
    QueueUrl: queueUrl,
    Entries: batch.map(({ hold, context }, n) => ({
      ...{ Id: String(n), MessageBody: formatMessage(hold) },
      ...(context && { MessageAttributes: contextAttributes(context) }),
    })),
  });
  const abortSignal = AbortSignal.timeout(Math.ceil(timeoutMs)); // which takes whole milliseconds only
  const reply = await sqs.send(command, { abortSignal }).catch((error: unknown) => {
    throw new QueueUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
  });
  const sent = new Set(reply.Successful?.map(({ Id }) => Id));
  const failed = new Map(reply.Failed?.map(({ Id, Code, Message }) => [Id, `${Code ?? ''} ${Message ?? ''}`]));
  return batch.map((_, n) => {
    if (sent.has(String(n))) return undefined;
    return new QueueUnavailable(failed.get(String(n)) ?? 'the queue said nothing of this entry');
  });
}

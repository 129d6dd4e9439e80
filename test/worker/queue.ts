/** The queue as the worker's tests see it: messages put in by hand, and figures read until they are as expected. */
import { DeleteMessageCommand, ReceiveMessageCommand, SendMessageBatchCommand } from '@aws-sdk/client-sqs';
import type { Hold } from '../../src/domain/reservation.ts';
import { queueDepth } from '../../src/queue/depth.ts';
import { formatMessage } from '../../src/queue/message.ts';
import { startWorker, type WorkerOptions } from '../../src/worker/worker.ts';
import { until, type House } from '../ledger/house.ts';

type WithQueue = Pick<House, 'sqs' | 'queueUrl'>;

/** Sends holds, or bodies as they are, in the given order. */
export async function send({ sqs, queueUrl }: WithQueue, messages: (Hold | string)[]): Promise<void> {
  for (let n = 0; n < messages.length; n += 10) {
    const Entries = messages.slice(n, n + 10).map((message, k) => ({
      Id: String(k),
      MessageBody: typeof message === 'string' ? message : formatMessage(message),
    }));
    await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
  }
}

/** Receives by hand, as a worker does that never acknowledges. */
export async function receive({ sqs, queueUrl }: WithQueue, visibilitySeconds = 1) {
  const command = { QueueUrl: queueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: visibilitySeconds };
  return (await sqs.send(new ReceiveMessageCommand(command))).Messages ?? [];
}

export async function remove({ sqs, queueUrl }: WithQueue, ReceiptHandle: string | undefined): Promise<void> {
  await sqs.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle }));
}

export const depth = ({ sqs, queueUrl }: WithQueue) => queueDepth(sqs, queueUrl, 2000);

/** Waits until nothing is left in the queue, and tells how much is in the dead-letter queue. */
export async function untilEmpty(of: WithQueue, withinMs = 20_000): Promise<number | null> {
  await until(async () => {
    const { waiting, inFlight } = await depth(of);
    return waiting + inFlight === 0;
  }, withinMs);
  return (await depth(of)).deadLetters;
}

/** Counts from here on how often each message is received through this client; whoever is received five times is dead. */
export function countReceives({ sqs }: Pick<WithQueue, 'sqs'>): Map<string, number> {
  const receives = new Map<string, number>();
  sqs.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { Messages = [] } = result.output as { Messages?: { MessageId?: string }[] };
      for (const { MessageId = '' } of Messages) receives.set(MessageId, (receives.get(MessageId) ?? 0) + 1);
      return result;
    },
    { step: 'initialize' },
  );
  return receives;
}

/** Runs a worker while `work` is done, and stops it in any case. */
export async function withWorker<T>(
  house: Pick<House, 'stores' | 'sqs' | 'queueUrl'>,
  work: () => Promise<T>,
  but: Partial<WorkerOptions> = {},
): Promise<T> {
  const options = { receivers: 2, batch: 100, waitSeconds: 1, visibilitySeconds: 1, queueUrl: house.queueUrl, ...but };
  const worker = startWorker(house.stores, house.sqs, options);
  return work().finally(() => worker.stop());
}

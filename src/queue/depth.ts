/** How much is in the queue, as far as SQS knows: its figures are approximate. */
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { QueueUnavailable } from './producer.ts';

/** `deadLetters` is null when the queue has no dead-letter queue. */
export type QueueDepth = { waiting: number; inFlight: number; deadLetters: number | null };

/** @throws {QueueUnavailable} */
export async function queueDepth(sqs: SQSClient, queueUrl: string, timeoutMs: number): Promise<QueueDepth> {
  try {
    const own = await attributes(sqs, queueUrl, timeoutMs);
    const dead = deadLetterUrl(queueUrl, own.RedrivePolicy);
    const deadLetters =
      dead === undefined ? null : (await attributes(sqs, dead, timeoutMs)).ApproximateNumberOfMessages;
    return {
      waiting: Number(own.ApproximateNumberOfMessages) + Number(own.ApproximateNumberOfMessagesDelayed ?? 0),
      inFlight: Number(own.ApproximateNumberOfMessagesNotVisible),
      deadLetters: deadLetters === null ? null : Number(deadLetters),
    };
  } catch (error) {
    throw new QueueUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function attributes(sqs: SQSClient, queueUrl: string, timeoutMs: number): Promise<Record<string, string>> {
  const command = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['All'] });
  return (await sqs.send(command, { abortSignal: AbortSignal.timeout(timeoutMs) })).Attributes ?? {};
}

/** The dead-letter queue is of the same account and region, so its URL differs in the last part only. */
export function deadLetterUrl(queueUrl: string, redrivePolicy: string | undefined): string | undefined {
  if (redrivePolicy === undefined) return undefined;
  const { deadLetterTargetArn } = JSON.parse(redrivePolicy) as { deadLetterTargetArn?: string };
  const name = deadLetterTargetArn?.split(':').at(-1);
  return name && new URL(name, queueUrl).href;
}

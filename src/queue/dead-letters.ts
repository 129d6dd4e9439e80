/** The dead-letter queue: looked at, and what can be read sent back to the queue once its cause is mended. */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type Message,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { deadLetterUrl } from './depth.ts';
import { parseMessage } from './message.ts';

/** `why` is set for a message that the worker could never read; it stays where it is. */
export type DeadLetter = { messageId: string; body: string; replayed: boolean; why?: string };

/** While this runs nobody else receives what it has received. */
const VISIBILITY_SECONDS = 60;

/**
 * Reads the dead-letter queue once through.
 * @param replay sends each message that can be read to the queue, and only then takes it out of here: dying in between
 *   leaves it in both, and a message twice is one order
 * @param limit messages at most
 * @throws {Error} when the queue has no dead-letter queue
 */
export async function deadLetters(
  sqs: SQSClient,
  queueUrl: string,
  replay: boolean,
  limit: number,
): Promise<DeadLetter[]> {
  const names = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['RedrivePolicy'] });
  const url = deadLetterUrl(queueUrl, (await sqs.send(names)).Attributes?.RedrivePolicy);
  if (url === undefined) throw new Error(`${queueUrl} has no dead-letter queue: set a RedrivePolicy`);
  const found = new Map<string, DeadLetter>();
  const kept: Message[] = [];
  while (found.size < limit) {
    const receive = new ReceiveMessageCommand({
      ...{ QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: VISIBILITY_SECONDS },
    });
    const messages = (await sqs.send(receive)).Messages ?? [];
    const fresh = messages.filter(({ MessageId }) => !found.has(MessageId ?? ''));
    if (fresh.length === 0) break;
    for (const message of fresh) {
      const letter = await handle(sqs, { from: url, to: queueUrl }, message, replay);
      found.set(letter.messageId, letter);
      if (!letter.replayed) kept.push(message);
    }
  }
  await showAgain(sqs, url, kept);
  return [...found.values()];
}

/** What stays is there at once for whoever looks next, not only after its visibility. */
async function showAgain(sqs: SQSClient, url: string, kept: Message[]): Promise<void> {
  for (let n = 0; n < kept.length; n += 10) {
    const entries = kept.slice(n, n + 10).map(({ ReceiptHandle }, id) => ({
      ...{ Id: String(id), ReceiptHandle, VisibilityTimeout: 0 },
    }));
    await sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries: entries }));
  }
}

async function handle(
  sqs: SQSClient,
  { from, to }: { from: string; to: string },
  message: Message,
  replay: boolean,
): Promise<DeadLetter> {
  const letter = { messageId: message.MessageId ?? '', body: message.Body ?? '' };
  try {
    parseMessage(message.Body);
  } catch (error) {
    return { ...letter, replayed: false, why: error instanceof Error ? error.message : String(error) };
  }
  if (!replay) return { ...letter, replayed: false };
  await sqs.send(new SendMessageCommand({ QueueUrl: to, MessageBody: letter.body }));
  await sqs.send(new DeleteMessageCommand({ QueueUrl: from, ReceiptHandle: message.ReceiptHandle }));
  return { ...letter, replayed: true };
}

/**
 * The plain worker: ten consumers, each message an order in a transaction of its own (one statement with stock and
 * journal), acknowledged ten at a time. Drains the queue until the bench lets go of it.
 */
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient, type Message } from '@aws-sdk/client-sqs';
import { parseMessage } from '../../src/queue/message.ts';
import { ready } from '../lib/child.ts';
import { createPool } from './sql.ts';
import { recordOne } from './record-one.ts';

const WORKERS = 10;
const QueueUrl = process.env['SQS_QUEUE_URL'] ?? '';

const endpoint = process.env['SQS_ENDPOINT'];
const sqs = new SQSClient(endpoint === undefined ? {} : { endpoint });
const pool = createPool(WORKERS);
let stopping = false;

async function work(): Promise<void> {
  while (!stopping) {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
    );
    for (const message of Messages) await recordOne(pool, parseMessage(message.Body));
    if (Messages.length > 0) await acknowledge(Messages);
  }
}

async function acknowledge(messages: Message[]): Promise<void> {
  const Entries = messages.map(({ ReceiptHandle }, n) => ({ Id: String(n), ReceiptHandle }));
  const { Failed = [] } = await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  if (Failed.length > 0) throw new Error(`${Failed.length} messages were not acknowledged`);
}

const working = Array.from({ length: WORKERS }, work);
ready({}, async () => {
  stopping = true;
  await Promise.all(working);
  await pool.end();
});

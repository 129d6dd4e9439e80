/** Rebuilds a lost gate from the ledger, after a bounded wait for the queue to bring what it still has. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { openGate, tokenFor } from '../operations/open.ts';
import type { Stores } from '../operations/stores.ts';
import { queueDepth } from '../queue/depth.ts';
import { QueueUnavailable } from '../queue/producer.ts';

/** `drainMs`: how long to wait for the queue at most; `timeoutMs`: for one look at it. */
export type RebuildOptions = { queueUrl: string; drainMs: number; timeoutMs: number };

/**
 * Winners who are still in the queue are not in the ledger yet: a gate built without them would sell their units again,
 * and the ledger would have to refuse somebody. So the queue is given time, but not for ever: 503 costs sales too.
 * @returns 'live' when there is a gate already: nothing was done
 */
export async function rebuild(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  sqs: SQSClient,
  saleId: string,
  options: RebuildOptions,
): Promise<'opened' | 'live'> {
  if (await stores.gate.figures(saleId)) return 'live';
  const left = await drained(sqs, options);
  if (left !== 0) {
    stores.log.warn(
      { saleId, left, waitedMs: options.drainMs },
      'rebuilding although the queue is not known to be empty',
    );
  }
  return openGate(stores, saleId, await tokenFor(stores.pool, saleId));
}

/** @returns how many messages were left when the wait was over; undefined when the queue could not be asked */
async function drained(sqs: SQSClient, { queueUrl, drainMs, timeoutMs }: RebuildOptions): Promise<number | undefined> {
  const until = performance.now() + drainMs;
  for (;;) {
    const left = await look(sqs, queueUrl, timeoutMs);
    if (left === 0 || performance.now() > until) return left;
    await sleep(100);
  }
}

async function look(sqs: SQSClient, queueUrl: string, timeoutMs: number): Promise<number | undefined> {
  try {
    const { waiting, inFlight } = await queueDepth(sqs, queueUrl, timeoutMs);
    return waiting + inFlight;
  } catch (error) {
    if (error instanceof QueueUnavailable) return undefined; // away counts as not known to be empty
    throw error;
  }
}

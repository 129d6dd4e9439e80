/** Rebuilds a lost gate from the ledger, after a bounded wait for the queue to bring what it still has. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { openGate, tokenFor } from '../operations/open.ts';
import type { Stores } from '../operations/stores.ts';
import { queueDepth } from '../queue/depth.ts';
import { QueueUnavailable } from '../queue/producer.ts';

/** `drainMs`: how long to wait for the queue at most; `timeoutMs`: for one look at it. */
export type RebuildOptions = { queueUrl: string; drainMs: number; timeoutMs: number };

const LOOK_EVERY_MS = 100;

/**
 * Winners who are still in the queue are not in the ledger yet: a gate built without them would sell their units again,
 * and the ledger would have to refuse somebody. So the queue is given time, but not for ever: 503 costs sales too.
 * @param since when the gate was found lost, by `performance.now()`
 * @param token the keeper's; '' draws a new one, by which whoever else is at it is refused
 * @returns 'draining' when it is too early; 'live' when there is a gate already: nothing was done
 */
export async function rebuildWhenDrained(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  sqs: SQSClient,
  saleId: string,
  since: number,
  options: RebuildOptions,
  token = '',
): Promise<'opened' | 'live' | 'draining'> {
  const left = await messagesLeft(sqs, options);
  const waitedMs = performance.now() - since;
  if (left !== 0 && waitedMs < options.drainMs) return 'draining';
  if (left !== 0) stores.log.warn({ saleId, left, waitedMs }, 'rebuilding although the queue is not known to be empty');
  const answer = await openGate(stores, saleId, token === '' ? await tokenFor(stores.pool, saleId) : Number(token));
  stores.log.info({ saleId, waitedMs }, `the gate is ${answer}`);
  return answer;
}

/** The same at once, for the command line: waits as long as it must. */
export async function rebuild(
  stores: Pick<Stores, 'pool' | 'gate' | 'log'>,
  sqs: SQSClient,
  saleId: string,
  options: RebuildOptions,
): Promise<'opened' | 'live'> {
  if (await stores.gate.figures(saleId)) return 'live';
  for (const since = performance.now(); ;) {
    const answer = await rebuildWhenDrained(stores, sqs, saleId, since, options);
    if (answer !== 'draining') return answer;
    await sleep(LOOK_EVERY_MS);
  }
}

/** @returns undefined when the queue could not be asked: not known to be empty */
async function messagesLeft(sqs: SQSClient, { queueUrl, timeoutMs }: RebuildOptions): Promise<number | undefined> {
  try {
    const { waiting, inFlight } = await queueDepth(sqs, queueUrl, timeoutMs);
    return waiting + inFlight;
  } catch (error) {
    if (error instanceof QueueUnavailable) return undefined;
    throw error;
  }
}

/**
 * Delivers what the outbox has, beside the keeper's passes and not in them: an endpoint that is slow or dead holds up
 * neither the sweep nor another endpoint, since each has lanes of its own, in each of which one call is under way.
 *
 * Several keepers share the outbox by claims in the ledger, not by leases: what is to be sent belongs to an endpoint and
 * to no sale, and Redis is not needed for it. A claim ends by itself, so what a keeper dies with is sent again, by
 * another, under the same id.
 */
import { crashPoint } from '../crash.ts';
import { pauseAfter } from '../domain/webhook.ts';
import type { Pool } from '../ledger/db.ts';
import * as outbox from '../ledger/deliveries.ts';
import { webhookAttempts } from '../meter.ts';
import type { Log } from '../operations/stores.ts';
import type { Answer, Poster } from './post.ts';

export type CourierOptions = {
  /** Between two looks for what is due. */
  intervalMs: number;
  /** Calls under way at once for each endpoint. */
  inFlight: number;
  /** Limit of a call, as the poster has it. */
  timeoutMs: number;
  /** How long what is concluded stays in the log. */
  retentionMs: number;
};

export type CourierDeps = {
  pool: Pool;
  log: Log;
  poster: Poster;
};

type AttemptResult = 'delivered' | 'not_delivered' | 'given_up' | 'cut_off';

/** From the end of a call's time limit to the end of its claim: for the ledger to hear of it. */
const CLAIM_MARGIN_MS = 15_000;
/** How long calls under way may go on when the keeper stops. */
const STOP_GRACE_MS = 3000;
const PRUNE_EVERY_MS = 60_000;
const PRUNED_AT_ONCE = 5000;

/**
 * One lane of an endpoint: sends what is due for it, one after the other, until nothing is. A call that takes long holds
 * up its own lane and no other.
 */
async function lane(
  deps: CourierDeps,
  endpointKey: number,
  timeoutMs: number,
  signal: AbortSignal,
  stopped: () => boolean,
): Promise<void> {
  while (!stopped()) {
    const [delivery] = await outbox.claimDeliveries(deps.pool, endpointKey, 1, timeoutMs + CLAIM_MARGIN_MS);
    if (!delivery) return;
    crashPoint('webhook_claimed');
    await attempt(deps, delivery, signal);
  }
}

async function attempt(deps: CourierDeps, delivery: outbox.Claimed, signal: AbortSignal): Promise<void> {
  const { endpointId, eventId, attempts } = delivery;
  const answer = await deps.poster.post(delivery, signal);
  crashPoint('webhook_answered');
  const result = await conclude(deps, delivery, answer, signal.aborted);
  webhookAttempts.inc({ result });
  const { status, error } = answer;
  deps.log.info({ endpointId, eventId, attempts, status, error }, `webhook ${result}`);
}

async function conclude(
  { pool, log }: CourierDeps,
  delivery: outbox.Claimed,
  answer: Answer,
  cutOff: boolean,
): Promise<AttemptResult> {
  const { endpointKey, endpointId, eventId, url, attempts } = delivery;
  if (answer.error === null) {
    await outbox.markDelivered(pool, delivery, answer);
    return 'delivered';
  }
  if (answer.status === null && cutOff) {
    await outbox.giveBackDelivery(pool, delivery);
    return 'cut_off';
  }
  if (answer.retryAfterMs !== undefined) await outbox.holdEndpoint(pool, endpointKey, url, answer.retryAfterMs);
  if (answer.status === 410 && (await outbox.deactivate(pool, endpointKey, url))) {
    log.warn({ endpointId }, 'an endpoint answered 410 Gone: nothing is sent to it until it is made active again');
  }
  const pause = pauseAfter(attempts, Math.random());
  await outbox.markNotDelivered(pool, delivery, answer, pause && Math.max(pause, answer.retryAfterMs ?? 0));
  if (pause !== undefined) return 'not_delivered';
  log.error({ endpointId, eventId, error: answer.error }, 'a webhook is given up after its last attempt');
  return 'given_up';
}

export function startCourier(deps: CourierDeps, { intervalMs, inFlight, timeoutMs, retentionMs }: CourierOptions) {
  const { pool, log } = deps;
  const calls = new AbortController();
  /** Those at work, by endpoint. */
  const lanes = new Map<number, Set<Promise<void>>>();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let prunedAt = -Infinity;

  /** What fails here is a store that is away: the next look tries it again. */
  const trying = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      log.error({ err: error }, 'webhooks: failed; the next look tries it again');
    }
  };
  const serve = (key: number) => {
    const own = lanes.get(key) ?? new Set();
    lanes.set(key, own);
    while (own.size < inFlight) {
      const one = trying(() => lane(deps, key, timeoutMs, calls.signal, () => stopped)).finally(() => own.delete(one));
      own.add(one);
    }
  };
  const look = async () => {
    for (const key of await outbox.dueEndpoints(pool)) serve(key);
    for (const [key, own] of lanes) if (own.size === 0) lanes.delete(key);
    if (performance.now() - prunedAt < PRUNE_EVERY_MS) return;
    prunedAt = performance.now();
    await outbox.pruneDeliveries(pool, retentionMs, PRUNED_AT_ONCE);
  };
  let looking = Promise.resolve();
  const next = () => {
    looking = trying(look).then(() => {
      if (!stopped) timer = setTimeout(next, intervalMs);
    });
  };
  next();
  return {
    /** Begins nothing new; calls under way may end, and are cut off after a while, without being counted. */
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await looking;
      const late = setTimeout(() => calls.abort(), STOP_GRACE_MS);
      await Promise.all([...lanes.values()].flatMap((own) => [...own]));
      clearTimeout(late);
    },
  };
}

/**
 * The outbox of webhooks, which is also their log. Rows are written by a trigger, in the transaction that changes the
 * order (migrations/); keepers claim them by skipping what others have claimed, and a claim ends by itself.
 */
import type { DeliveryStatus } from '../domain/webhook.ts';
import { query, transaction, type Pool, type Queryable } from './db.ts';
import { COMMAND, writeJournal } from './journal.ts';

const DUE = {
  name: 'due-endpoints',
  text: `select endpoint_key as "endpointKey" from webhook_endpoints e
         where active and (hold_until is null or hold_until <= now()) and exists (
           select from webhook_deliveries d where d.endpoint_key = e.endpoint_key and d.status = 'PENDING'
             and d.next_attempt_at <= now() and (d.claimed_until is null or d.claimed_until <= now()))`,
};

/** The keys of endpoints to which something is to be sent now. */
export async function dueEndpoints(db: Queryable): Promise<number[]> {
  return (await query<{ endpointKey: number }>(db, DUE)).map(({ endpointKey }) => endpointKey);
}

/** A delivery to be made. `attempts` counts this one; `payload` is what is signed, to the byte. */
export type Claimed = {
  endpointKey: number;
  endpointId: string;
  eventId: string;
  url: string;
  /** The present secret first. */
  secrets: string[];
  payload: string;
  attempts: number;
};

const CLAIM = {
  name: 'claim-deliveries',
  text: `
    with due as materialized (
      select d.endpoint_key, d.event_id, e.endpoint_id, e.url
      from webhook_endpoints e join webhook_deliveries d using (endpoint_key)
      where e.endpoint_key = $1 and e.active and (e.hold_until is null or e.hold_until <= now())
        and d.status = 'PENDING' and d.next_attempt_at <= now() and (d.claimed_until is null or d.claimed_until <= now())
      order by d.next_attempt_at limit $2 for update of d skip locked
    )
    update webhook_deliveries d set attempts = d.attempts + 1, updated_at = now(),
      claimed_until = now() + $3 * interval '1 millisecond'
    from due where (d.endpoint_key, d.event_id) = (due.endpoint_key, due.event_id)
    returning d.endpoint_key as "endpointKey", due.endpoint_id as "endpointId", d.event_id as "eventId", due.url,
      d.payload::text as payload, d.attempts,
      (select array_agg(s.secret order by s.until desc nulls first) from webhook_secrets s
       where s.endpoint_key = d.endpoint_key and (s.until is null or s.until > now())) as secrets`,
};

/**
 * Takes deliveries to an endpoint whose time has come, unless it is inactive or wants to be left alone.
 * @param claimMs nobody else takes them for so long: longer than a call may take
 */
export async function claimDeliveries(db: Queryable, endpointKey: number, limit: number, claimMs: number) {
  return query<Claimed>(db, CLAIM, [endpointKey, limit, claimMs]);
}

/** What an attempt came to: the status and the beginning of the answer, or why there was none. */
export type Outcome = { status: number | null; answer: string | null; error: string | null };
type Key = Pick<Claimed, 'endpointKey' | 'eventId' | 'attempts'>;

const DELIVERED = {
  name: 'delivered',
  text: `update webhook_deliveries set status = 'DELIVERED', claimed_until = null, last_status = $3, last_answer = $4,
           last_error = null, updated_at = now()
         where endpoint_key = $1 and event_id = $2 and status = 'PENDING'`,
};

/** The shop has it. True whoever says so, also when the claim has ended meanwhile. */
export async function markDelivered(db: Queryable, { endpointKey, eventId }: Key, { status, answer }: Outcome) {
  await query(db, DELIVERED, [endpointKey, eventId, status, answer]);
}

const NOT_DELIVERED = {
  name: 'not-delivered',
  text: `update webhook_deliveries set claimed_until = null, last_status = $4, last_answer = $5, last_error = $6,
           updated_at = now(), status = case when $7::bigint is null then 'FAILED' else 'PENDING' end,
           next_attempt_at = now() + coalesce($7::bigint, 0) * interval '1 millisecond'
         where endpoint_key = $1 and event_id = $2 and status = 'PENDING' and attempts = $3`,
};

/**
 * The attempt failed. Nothing is changed if another one was begun meanwhile.
 * @param pauseMs until the next one; undefined: there is none
 */
export async function markNotDelivered(
  db: Queryable,
  { endpointKey, eventId, attempts }: Key,
  { status, answer, error }: Outcome,
  pauseMs: number | undefined,
) {
  await query(db, NOT_DELIVERED, [endpointKey, eventId, attempts, status, answer, error, pauseMs ?? null]);
}

const GIVE_BACK = {
  name: 'give-back-delivery',
  text: `update webhook_deliveries set claimed_until = null, attempts = attempts - 1, updated_at = now()
         where endpoint_key = $1 and event_id = $2 and status = 'PENDING' and attempts = $3`,
};

/** The attempt was cut off by ourselves: it does not count, and another keeper may take the delivery at once. */
export async function giveBackDelivery(db: Queryable, { endpointKey, eventId, attempts }: Key): Promise<void> {
  await query(db, GIVE_BACK, [endpointKey, eventId, attempts]);
}

const GONE = {
  name: 'endpoint-gone',
  text: `update webhook_endpoints set active = false, gone_at = now()
         where endpoint_key = $1 and url = $2 and active returning 1`,
};

/** The endpoint answered 410 at this URL. @returns whether it was active there until now */
export async function deactivate(db: Queryable, endpointKey: number, url: string): Promise<boolean> {
  return (await query(db, GONE, [endpointKey, url])).length > 0;
}

const HOLD = {
  name: 'hold-endpoint',
  text: `update webhook_endpoints set hold_until = greatest(hold_until, now() + $3 * interval '1 millisecond')
         where endpoint_key = $1 and url = $2`,
};

/** The endpoint asked to be left alone for so long. */
export async function holdEndpoint(db: Queryable, endpointKey: number, url: string, forMs: number): Promise<void> {
  await query(db, HOLD, [endpointKey, url, forMs]);
}

const PRUNE = {
  name: 'prune-deliveries',
  text: `
    with old as (
      select d.endpoint_key, d.event_id from webhook_deliveries d
      where d.updated_at < now() - $1 * interval '1 millisecond' and (d.status <> 'PENDING' or not exists (
        select from webhook_endpoints e where e.endpoint_key = d.endpoint_key and e.active))
      order by d.updated_at limit $2 for update skip locked
    ), pruned as (
      delete from webhook_deliveries d using old where (d.endpoint_key, d.event_id) = (old.endpoint_key, old.event_id)
      returning d.endpoint_key
    ), complete as (
      update webhook_endpoints set complete_since = greatest(complete_since, now() - $1 * interval '1 millisecond')
      where endpoint_key in (select endpoint_key from pruned)
    )
    select count(*)::int as pruned from pruned`,
};

/**
 * Deletes, at most `limit`, what nothing has happened to for `ageMs`: delivered, given up, or of an endpoint that is
 * inactive or was deleted. @returns how many
 */
export async function pruneDeliveries(db: Queryable, ageMs: number, limit: number): Promise<number> {
  return (await query<{ pruned: number }>(db, PRUNE, [ageMs, limit]))[0]?.pruned ?? 0;
}

/** A delivery as the log shows it. Times in epoch milliseconds; `no` orders the log. */
export type Delivery = {
  no: number;
  eventId: string;
  type: string;
  status: DeliveryStatus;
  attempts: number;
  lastStatus: number | null;
  lastAnswer: string | null;
  lastError: string | null;
  nextAttemptAt: number | null;
  createdAt: number;
  updatedAt: number;
};

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`;
const SHOWN = `d.delivery_no as no, d.event_id as "eventId", d.type, d.status, d.attempts, d.last_status as "lastStatus",
  d.last_answer as "lastAnswer", d.last_error as "lastError", ${ms('d.created_at')} as "createdAt",
  ${ms('d.updated_at')} as "updatedAt",
  case when d.status = 'PENDING' then ${ms('greatest(d.next_attempt_at, d.claimed_until, e.hold_until)')} end as "nextAttemptAt"`;

// A page of each status by its index, then the newest of these.
const LOG = {
  name: 'list-deliveries',
  text: `
    select ${SHOWN} from webhook_endpoints e, unnest($2::text[]) as wanted (status), lateral (
      select * from webhook_deliveries where endpoint_key = e.endpoint_key and status = wanted.status and delivery_no < $3
      order by delivery_no desc limit $4) d
    where e.endpoint_id = $1 order by no desc limit $4`,
};

/** The newest deliveries to an endpoint in these statuses that are older than the cursor. */
export async function listDeliveries(
  db: Queryable,
  {
    endpointId,
    statuses,
    before,
    limit,
  }: { endpointId: string; statuses: DeliveryStatus[]; before: number; limit: number },
): Promise<Delivery[]> {
  return query<Delivery>(db, LOG, [endpointId, statuses, before, limit]);
}

// One that is being sent at this moment stays claimed: the same event is not sent twice at once.
const REDELIVER = {
  name: 'redeliver',
  text: `
    update webhook_deliveries d set status = 'PENDING', attempts = 0, next_attempt_at = now(), updated_at = now()
    from webhook_endpoints e where e.endpoint_id = $1 and d.endpoint_key = e.endpoint_key and d.event_id = $2
    returning ${SHOWN}`,
};

/** Has an event sent again, from the first attempt on, under the same id. @returns undefined when the log has no such event */
export function redeliver(
  pool: Pool,
  endpointId: string,
  eventId: string,
  by = COMMAND,
): Promise<Delivery | undefined> {
  return transaction(pool, async (client) => {
    const [delivery] = await query<Delivery>(client, REDELIVER, [endpointId, eventId]);
    if (delivery) await writeJournal(client, by, { action: 'redeliver', endpointId, before: null, after: { eventId } });
    return delivery;
  });
}

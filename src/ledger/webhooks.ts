/** Endpoints of the shop in the ledger, with their secrets. A secret leaves here when it is made, and to sign: never in a list. */
import { randomBytes } from 'node:crypto';
import { MAX_ENDPOINTS, WebhookEventType, type EndpointSettings } from '../domain/webhook.ts';
import { query, transaction, type Pool, type Queryable } from './db.ts';
import { COMMAND, writeJournal } from './journal.ts';

/** An endpoint without its secrets. Times in epoch milliseconds. */
export type Endpoint = {
  endpointId: string;
  url: string;
  events: WebhookEventType[];
  active: boolean;
  createdAt: number;
  /** When it answered 410 Gone, which made it inactive. */
  goneAt: number | null;
  /** It asked to be left alone until then. */
  holdUntil: number | null;
  /** Until when the last secret that was rotated out signs too. */
  oldSecretUntil: number | null;
};

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`;
const COLUMNS = `e.endpoint_id as "endpointId", e.url, e.events, e.active, ${ms('e.created_at')} as "createdAt",
  ${ms('e.gone_at')} as "goneAt", case when e.hold_until > now() then ${ms('e.hold_until')} end as "holdUntil",
  (select ${ms('max(until)')} from webhook_secrets s where s.endpoint_key = e.endpoint_key and until > now()) as "oldSecretUntil"`;

const LIST = { name: 'list-endpoints', text: `select ${COLUMNS} from webhook_endpoints e order by endpoint_id` };
const GET = { name: 'get-endpoint', text: `select ${COLUMNS} from webhook_endpoints e where endpoint_id = $1` };
const DELETE = {
  name: 'delete-endpoint',
  text: `delete from webhook_endpoints where endpoint_id = $1 returning url, events, active`,
};

export async function listEndpoints(db: Queryable): Promise<Endpoint[]> {
  return query<Endpoint>(db, LIST);
}

export async function getEndpoint(db: Queryable, endpointId: string): Promise<Endpoint | undefined> {
  return (await query<Endpoint>(db, GET, [endpointId]))[0];
}

/** What was still to be sent to it is not sent any more. @returns whether there was one */
export function deleteEndpoint(pool: Pool, endpointId: string, by = COMMAND): Promise<boolean> {
  return transaction(pool, async (client) => {
    const [before] = await query<Settings>(client, DELETE, [endpointId]);
    if (!before) return false;
    await writeJournal(client, by, { action: 'delete', endpointId, before, after: null });
    return true;
  });
}

type Settings = Pick<Endpoint, 'url' | 'events' | 'active'>;
/** An endpoint as the journal keeps it. A secret is in no entry. */
const journalled = ({ url, events, active }: Settings): Settings => ({ url, events, active });

// Keeps those out who create endpoints at the same moment, and nobody who reads: orders go on.
const LOCK = { name: 'lock-endpoints', text: `lock table webhook_endpoints in share row exclusive mode` };
const OTHERS = {
  name: 'other-endpoints',
  text: `select count(*)::int as others from webhook_endpoints where endpoint_id <> $1`,
};
// From the moment on in which it wants other events, or any again, its log is complete for what it wants now.
const PUT = {
  name: 'put-endpoint',
  text: `
    insert into webhook_endpoints as e (endpoint_id, url, events, active) values ($1, $2, $3, $4)
    on conflict (endpoint_id) do update set url = $2, events = $3, active = $4,
      gone_at = case when $4 then null else e.gone_at end,
      hold_until = case when e.url = $2 then e.hold_until end,
      complete_since = case when (e.events, e.active) is distinct from ($3::text[], $4::boolean) then now() else e.complete_since end
    returning ${COLUMNS}`,
};
const ADD_SECRET = {
  name: 'add-webhook-secret',
  text: `insert into webhook_secrets (endpoint_key, secret) select endpoint_key, $2 from webhook_endpoints where endpoint_id = $1`,
};

/** `secret` is there for an endpoint that is new: it is told this once. */
export type Put = { endpoint: Endpoint; secret?: string };

/** Creates an endpoint, or changes it to these whole settings. @returns undefined when there are too many already */
export function putEndpoint(
  pool: Pool,
  endpointId: string,
  settings: EndpointSettings,
  by = COMMAND,
): Promise<Put | undefined> {
  const { url, active } = settings;
  const events = WebhookEventType.options.filter((type) => settings.events.includes(type)); // each once, in one order
  return transaction(pool, async (client): Promise<Put | undefined> => {
    await query(client, LOCK);
    const before = await getEndpoint(client, endpointId);
    const [now] = await query<{ others: number }>(client, OTHERS, [endpointId]);
    if (!before && (now?.others ?? 0) >= MAX_ENDPOINTS) return undefined;
    const [endpoint] = await query<Endpoint>(client, PUT, [endpointId, url, events, active]);
    if (!endpoint) throw new Error(`endpoint ${endpointId} was written and is not there`);
    const facts = { before: before ? journalled(before) : null, after: journalled(endpoint) };
    await writeJournal(client, by, { action: before ? 'change' : 'create', endpointId, ...facts });
    if (before) return { endpoint };
    const secret = newSecret();
    await query(client, ADD_SECRET, [endpointId, secret]);
    return { endpoint, secret };
  });
}

/** 32 random bytes, in the form of Standard Webhooks. */
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

const LOCK_ONE = {
  name: 'lock-endpoint',
  text: `select 1 from webhook_endpoints where endpoint_id = $1 for no key update`,
};
const RETIRE = {
  name: 'retire-webhook-secret',
  text: `update webhook_secrets s set until = now() + $2 * interval '1 millisecond' from webhook_endpoints e
         where e.endpoint_id = $1 and s.endpoint_key = e.endpoint_key and s.until is null`,
};
const FORGET = {
  name: 'forget-webhook-secrets',
  text: `delete from webhook_secrets s using webhook_endpoints e
         where e.endpoint_id = $1 and s.endpoint_key = e.endpoint_key and s.until <= now()`,
};

/**
 * A new secret signs from now on; the one before signs beside it for a while.
 * @param overlapMs for how long
 * @returns undefined when there is no such endpoint
 */
export function rotateSecret(
  pool: Pool,
  endpointId: string,
  overlapMs: number,
  by = COMMAND,
): Promise<Required<Put> | undefined> {
  return transaction(pool, async (client) => {
    if ((await query(client, LOCK_ONE, [endpointId])).length === 0) return undefined;
    const secret = newSecret();
    await query(client, FORGET, [endpointId]);
    await query(client, RETIRE, [endpointId, overlapMs]);
    await query(client, ADD_SECRET, [endpointId, secret]);
    const endpoint = await getEndpoint(client, endpointId);
    const until = endpoint?.oldSecretUntil ?? null;
    const after = { oldSecretUntil: until === null ? null : new Date(until).toISOString() };
    await writeJournal(client, by, { action: 'rotate', endpointId, before: null, after });
    return endpoint && { endpoint, secret };
  });
}

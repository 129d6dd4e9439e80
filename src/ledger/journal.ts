/**
 * The admin journal: who changed what, when, from what to what. Append-only. A change writes its entry in its own
 * transaction, so that neither can be there without the other.
 */
import type { Sale } from '../domain/sale.ts';
import { query, type Queryable } from './db.ts';

/** `token`: the admin API. `session`: the operations room, by the session's id. `command`: the command line. */
export type Actor = { who: 'token' | 'session' | 'command'; session: string | null; requestId: string | null };

/** Whoever acts without a request: the command line. */
export const COMMAND: Actor = { who: 'command', session: null, requestId: null };

export const journalActions = [
  ...(['create', 'change', 'resize', 'pause', 'resume', 'end', 'close', 'refund', 'audit', 'rush'] as const),
  ...(['delete', 'rotate', 'redeliver'] as const),
] as const;
export type JournalAction = (typeof journalActions)[number];

type Outcome = { outcome: 'done'; reason: null } | { outcome: 'refused' | 'failed'; reason: string };
/** What an entry is about: a sale, or an endpoint of the shop's webhooks. */
export type Subject = { saleId: string; endpointId?: never } | { endpointId: string; saleId?: never };
export type JournalNote = Subject & { action: JournalAction; before: object | null; after: object | null };

/** `at` in epoch milliseconds; `xid` is of the transaction that wrote it. */
export type JournalEntry = Pick<JournalNote, 'action' | 'before' | 'after'> &
  Actor & { saleId: string | null; endpointId: string | null } & { entryId: number; at: number; xid: string } & {
    outcome: Outcome['outcome'];
    reason: string | null;
  };

const WRITE = {
  name: 'journal-write',
  text: `insert into admin_journal (who, session, request_id, action, sale_id, endpoint_id, outcome, reason, before, after)
         values ($1, $2, $3, $4, $5, $6, $7, left($8, 2000), $9, $10)`,
};

/** Writes an entry. For what was done, `db` is the client of the transaction that does it. */
export async function writeJournal(
  db: Queryable,
  by: Actor,
  { action, saleId, endpointId, before, after }: JournalNote,
  { outcome, reason }: Outcome = { outcome: 'done', reason: null },
): Promise<void> {
  const json = (value: object | null) => value && JSON.stringify(value);
  const what = [action, saleId ?? null, endpointId ?? null, outcome, reason, json(before), json(after)];
  await query(db, WRITE, [by.who, by.session, by.requestId, ...what]);
}

/** A sale's settings as the journal keeps them: times as RFC 3339. */
export function journalled({ saleId: _, openedAt: __, startsAt, endsAt, ...rest }: Sale): object {
  return { ...rest, startsAt: new Date(startsAt).toISOString(), endsAt: new Date(endsAt).toISOString() };
}

const COLUMNS = `entry_id as "entryId", (extract(epoch from at) * 1000)::bigint as at, xid::text as xid, who, session,
  request_id as "requestId", action, sale_id as "saleId", endpoint_id as "endpointId", outcome, reason, before, after`;
const LIST = {
  name: 'journal-list',
  text: `select ${COLUMNS} from admin_journal
         where xid < pg_snapshot_xmin(pg_current_snapshot()) and (xid, entry_id) > ($1::text::xid8, $2::text::bigint)
           and ($3::text is null or sale_id = $3)
         order by xid, entry_id limit $4`,
};

export type JournalCursor = { xid: string; entryId: string };
export const JOURNAL_START: JournalCursor = { xid: '0', entryId: '0' };

/**
 * Entries after a cursor, oldest first. Only what every earlier transaction is known to be done with is shown, so that
 * a reader who keeps the cursor and asks again misses none.
 * @param saleId null: of all sales
 */
export async function listJournal(
  db: Queryable,
  { saleId, after, limit }: { saleId: string | null; after: JournalCursor; limit: number },
): Promise<JournalEntry[]> {
  return query<JournalEntry>(db, LIST, [after.xid, after.entryId, saleId, limit]);
}

const NEWEST = {
  name: 'journal-newest',
  text: `select ${COLUMNS} from admin_journal
         where ($1::text is null or sale_id = $1) and ($2::bigint is null or entry_id < $2)
         order by entry_id desc limit $3`,
};

/** Newest first, before an entry (null: from the newest). For people who look: one that commits late may be skipped. */
export async function newestJournal(
  db: Queryable,
  { saleId, before, limit }: { saleId: string | null; before: number | null; limit: number },
): Promise<JournalEntry[]> {
  return query<JournalEntry>(db, NEWEST, [saleId, before, limit]);
}

const LAST = {
  name: 'journal-last',
  text: `select ${COLUMNS} from admin_journal where sale_id = $1 and action = $2 order by entry_id desc limit 1`,
};

/** The last entry of a sale about this, if there is one. */
export async function lastJournal(
  db: Queryable,
  saleId: string,
  action: JournalAction,
): Promise<JournalEntry | undefined> {
  return (await query<JournalEntry>(db, LAST, [saleId, action]))[0];
}

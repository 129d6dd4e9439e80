/** GET /admin/journal: who changed what. The entries themselves are written by what makes the changes. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { JOURNAL_START, listJournal, type Actor, type JournalCursor, type JournalEntry } from '../ledger/journal.ts';
import type { Api } from './app.ts';
import { requestId } from './request-id.ts';
import { Journal, JournalQuery, jsonSchema } from './schemas.ts';

/** Who acts in a request of the admin API. */
export const byToken = (request: FastifyRequest): Actor => ({
  ...{ who: 'token', session: null, requestId: requestId(request) },
});

/** An entry as the interface tells it: members that have nothing to say left out. */
export function presentEntry({ at, xid: _, ...entry }: JournalEntry) {
  const members = Object.entries({ ...entry, at: new Date(at).toISOString() });
  return Object.fromEntries(members.filter(([, value]) => value !== null));
}

export function journalRoute(app: FastifyInstance, { stores }: Api, adminsOnly: object, documented: object): void {
  app.get<{ Querystring: z.infer<typeof JournalQuery> }>(
    '/admin/journal',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'listJournal',
        summary: 'What admins changed, tried to change, and looked into: oldest first',
        'x-told': {
          200: { description: 'A page. Keep `next`, and pass it as `after` to go on; null: nothing new yet' },
        },
        'x-refuses': ['ledger_unavailable'],
        querystring: jsonSchema(JournalQuery, 'input'),
        response: { 200: jsonSchema(Journal) },
      },
    },
    async ({ query: { saleId = null, after, limit } }) => {
      const entries = await listJournal(stores.pool, { saleId, after: cursorFrom(after), limit: Number(limit) });
      const last = entries.at(-1);
      return { entries: entries.map(presentEntry), next: last ? `${last.xid}.${last.entryId}` : null };
    },
  );
}

function cursorFrom(text: string | undefined): JournalCursor {
  const [xid, entryId] = text?.split('.') ?? [];
  return xid !== undefined && entryId !== undefined ? { xid, entryId } : JOURNAL_START;
}

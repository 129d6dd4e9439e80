/**
 * What the room has done apart: an audit of a sale, and where the system runs for a demonstration, a rush. Both take longer
 * than a request may, so what they find is an entry in the journal: every process can show it, and it is still there
 * after a restart.
 */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { lastJournal, writeJournal, type Actor, type JournalAction } from '../../ledger/journal.ts';
import { putSale } from '../../operations/sales.ts';
import type { Api } from '../app.ts';
import { presentEntry } from '../journal.ts';
import { Problem } from '../problem.ts';
import { jsonSchema, SaleParams } from '../schemas.ts';
import type { Room, Rush } from './room.ts';
import type { Ops } from './routes.ts';

type Params = { Params: z.infer<typeof SaleParams> };
const BUYERS = [2000, 5000, 20_000] as const;
const StartRush = z.strictObject({
  buyers: z.literal(BUYERS),
  units: z.int().min(1).max(1000),
  overSeconds: z.int().min(1).max(60),
});
/** Long enough to watch winners who do not pay, short enough to see their units come back. */
const HOLD_SECONDS = 12;
const HOUR_MS = 3_600_000;

/** `line` is the last that a rush said. */
type Running = { saleId: string; startedAt: string; line: string };

/** One audit and one rush at a time per process. */
export class Tools {
  readonly #api: Api;
  readonly #room: Room;
  readonly running: Record<'audit' | 'rush', Running | null> = { audit: null, rush: null };

  constructor(api: Api, room: Room) {
    this.#api = api;
    this.#room = room;
  }

  audit(by: Actor, saleId: string): Running {
    return this.#begin('audit', by, saleId, () => this.#room.audit(saleId));
  }

  rush(rush: Rush, by: Actor, saleId: string, { buyers, overSeconds }: z.infer<typeof StartRush>): Running {
    return this.#begin('rush', by, saleId, (running) =>
      rush.run({ saleId, buyers, overSeconds }, (line) => (running.line = line)),
    );
  }

  /** @throws {Problem} `already_running` */
  idle(what: 'audit' | 'rush'): void {
    const running = this.running[what];
    if (running)
      throw new Problem('already_running', `It is of sale ${running.saleId}, begun at ${running.startedAt}.`);
  }

  #begin(
    what: JournalAction & ('audit' | 'rush'),
    by: Actor,
    saleId: string,
    run: (running: Running) => Promise<object>,
  ) {
    this.idle(what);
    const running: Running = { saleId, startedAt: new Date().toISOString(), line: '' };
    this.running[what] = running;
    const { pool, log } = this.#api.stores;
    const note = { action: what, saleId, before: null };
    const written = run(running).then(
      (found) => writeJournal(pool, by, { ...note, after: found }),
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        return writeJournal(pool, by, { ...note, after: null }, { outcome: 'failed', reason });
      },
    );
    written
      .catch((err: unknown) => {
        log.warn(
          { err, requestId: by.requestId, saleId, what },
          'what an audit or a rush found could not be written down',
        );
      })
      .finally(() => (this.running[what] = null));
    return running;
  }
}

export function toolRoutes(scope: FastifyInstance, { api, room, sessions, tools }: Ops): void {
  const { stores, directory, inTime } = api;
  const params = jsonSchema(SaleParams);
  scope.post<Params>(
    '/ops/sales/:saleId/audit',
    { ...inTime, schema: { hide: true, params } },
    async (request, reply) => {
      const by = await sessions.actor(request);
      const { saleId } = request.params;
      if (!(await directory.find(saleId))) throw new Problem('sale_not_found');
      return reply.code(202).send(tools.audit(by, saleId));
    },
  );
  for (const what of ['audit', 'rush'] as const) {
    // The last one of this sale, and whichever runs in this process.
    scope.get<Params>(`/ops/sales/:saleId/${what}`, { ...inTime, schema: { hide: true, params } }, async (request) => {
      await sessions.must(request);
      const last = await lastJournal(stores.pool, request.params.saleId, what);
      return { running: tools.running[what], last: last ? presentEntry(last) : null };
    });
  }
  const { rush } = room;
  if (!rush) return;
  scope.post<{ Body: z.infer<typeof StartRush> }>(
    '/ops/rush',
    { ...inTime, schema: { hide: true, body: jsonSchema(StartRush, 'input') } },
    async (request, reply) => {
      const by = await sessions.actor(request);
      tools.idle('rush');
      const { buyers, units } = request.body;
      const now = Date.now();
      const saleId = `rush-${now.toString(36)}`;
      const settings = {
        ...{ name: `Rush: ${units} units, ${buyers} buyers`, total: units, maxPerReservation: 1 },
        ...{ startsAt: new Date(now - 60_000).toISOString(), endsAt: new Date(now + HOUR_MS).toISOString() },
        ...{ holdSeconds: HOLD_SECONDS, price: { amount: 1999, currency: 'EUR' } },
      };
      await putSale(stores, saleId, settings, by);
      await directory.refresh();
      return reply.code(202).send(tools.rush(rush, by, saleId, request.body));
    },
  );
}

/** GET /sales/{saleId}/events: the sale as GET /sales/{saleId} tells it, now and whenever it changes, as server-sent events. */
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import type { Api } from './app.ts';
import { eventRoute, lastEventId } from './event-schemas.ts';
import { awayBy, FanOut, type Reading } from './fan-out.ts';
import { publicSale } from './sales.ts';
import { jsonSchema, PublicSale, SaleParams } from './schemas.ts';

const EVENT = 'sale';

export function saleEventsRoute(app: FastifyInstance, api: Api): void {
  const { config, streams, stores } = api;
  const everyMs = config.EVENT_POLL_MS;
  const readOne = async (saleId: string): Promise<Reading> => {
    const sale = PublicSale.parse(await publicSale(api, saleId, everyMs / 2)); // no more members than the answer has
    const { serverTime: _, ...identity } = sale; // time goes on: that is no change
    return {
      ...{ event: EVENT, data: JSON.stringify(sale), identity: JSON.stringify(identity) },
      last: sale.state === 'closed',
    };
  };
  const fanOut = new FanOut({
    name: 'sales',
    everyMs,
    log: stores.log,
    // The gate comes back, and the sale with it. A sale that is not known to exist is another matter.
    waitsFor: ['gate_unavailable', 'gate_not_loaded'],
    read: async (saleIds) =>
      new Map(await Promise.all(saleIds.map(async (id) => [id, await readOne(id).catch(awayBy)] as const))),
  });
  app.get<{ Params: z.infer<typeof SaleParams> }>(
    '/sales/:saleId/events',
    eventRoute(EVENT, 'Sale', {
      operationId: 'saleEvents',
      summary: 'A sale as anybody may see it, now and whenever it changes, as server-sent events until it is closed',
      'x-refuses': ['sale_not_found', 'ledger_unavailable', 'overloaded'],
      params: jsonSchema(SaleParams),
    }),
    async (request, reply) => {
      const open = () => streams.open(EVENT, reply);
      const told = await fanOut.listen(request.params.saleId, lastEventId(request), open);
      return told ? reply : reply.code(204).send();
    },
  );
}

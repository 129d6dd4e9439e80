/** What can be changed from the room: the operations of the admin API, by a session, each with its entry in the journal. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { SaleSettings, type Sale } from '../../domain/sale.ts';
import type { Actor, JournalAction } from '../../ledger/journal.ts';
import { attempted } from '../../operations/journal.ts';
import { resizeSale } from '../../operations/sales.ts';
import { actionNames, actions } from '../admin.ts';
import { presentSale } from '../sales.ts';
import { jsonSchema, SaleParams } from '../schemas.ts';
import type { Ops } from './routes.ts';

type Params = { Params: z.infer<typeof SaleParams> };
const Total = z.strictObject({ total: SaleSettings.shape.total });

export function changeRoutes(scope: FastifyInstance, { api, sessions }: Ops): void {
  const { stores, directory, inTime } = api;
  const params = jsonSchema(SaleParams);

  const change = async (
    request: FastifyRequest<Params>,
    action: JournalAction,
    act: (saleId: string, by: Actor) => Promise<Sale>,
  ) => {
    const by = await sessions.actor(request);
    const { saleId } = request.params;
    const sale = await attempted(stores, by, { action, saleId }, () => act(saleId, by));
    stores.log.info({ requestId: by.requestId, session: by.session, saleId, action }, 'an admin changed a sale');
    await directory.refresh();
    return presentSale(sale, Date.now());
  };

  for (const action of actionNames) {
    const [, act] = actions[action];
    scope.post<Params>(`/ops/sales/:saleId/${action}`, { ...inTime, schema: { hide: true, params } }, (request) =>
      change(request, action, (saleId, by) => act(stores, saleId, by)),
    );
  }
  scope.put<Params & { Body: z.infer<typeof Total> }>(
    '/ops/sales/:saleId/total',
    { ...inTime, schema: { hide: true, params, body: jsonSchema(Total, 'input') } },
    (request) => change(request, 'resize', (saleId, by) => resizeSale(stores, saleId, request.body.total, by)),
  );
}

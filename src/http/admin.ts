/** Admin: sales created, changed, listed, paused, resumed, ended, closed, and the list of orders for whoever ships. */
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { SaleSettings, wrongTimes, type Sale } from '../domain/sale.ts';
import { GateUnavailable } from '../gate/gate.ts';
import { getSale, ledgerFigures, listOrders, listSales, START, type Cursor } from '../ledger/sales.ts';
import type { Actor } from '../ledger/journal.ts';
import { attempted } from '../operations/journal.ts';
import { refundReservation } from '../operations/refund.ts';
import { closeSale, putSale, setState } from '../operations/sales.ts';
import { queueDepth } from '../queue/depth.ts';
import { QueueUnavailable } from '../queue/producer.ts';
import type { Api } from './app.ts';
import { bearerOnly } from './auth.ts';
import { byToken, journalRoute } from './journal.ts';
import { Problem, type ProblemCode } from './problem.ts';
import { requestId } from './request-id.ts';
import { ownId, presentReservation } from './reservations.ts';
import { presentSale } from './sales.ts';
import {
  AdminReservation,
  AdminSale,
  AdminSales,
  jsonSchema,
  Orders,
  OrdersQuery,
  RefundBody,
  ReservationParams,
  SaleFigures,
  SaleParams,
} from './schemas.ts';

type Params = { Params: z.infer<typeof SaleParams> };
const params = jsonSchema(SaleParams);
const AWAY = ['gate_not_loaded', 'gate_unavailable', 'ledger_unavailable'] as const;

type Act = (stores: Api['stores'], saleId: string, by: Actor) => Promise<Sale>;

/** What can be done to a sale as it is, by its name in the path: what it is for, how, what it may be refused with. */
export const actions = {
  pause: ['Nobody wins until it is resumed', (to, saleId, by) => setState(to, saleId, 'paused', by), 'ended'],
  resume: ['Open a paused sale again', (to, saleId, by) => setState(to, saleId, 'open', by), 'ended'],
  end: [
    'End a sale for good; its holds may still be paid',
    (to, saleId, by) => setState(to, saleId, 'ended', by),
    'ended',
  ],
  close: ['Close an ended sale and remove its gate', (to, saleId, by) => closeSale(to, saleId, by), 'not_settled'],
} satisfies Record<string, [summary: string, act: Act, refuses: ProblemCode]>;
export const actionNames = Object.keys(actions) as (keyof typeof actions)[];

export function adminRoutes(app: FastifyInstance, api: Api): void {
  const { stores, directory, config, inTime } = api;
  if (config.ADMIN_TOKEN.length === 0) return;
  const adminsOnly = { ...inTime, onRequest: bearerOnly(config.ADMIN_TOKEN) };
  const documented = { tags: ['admin'], security: [{ admin: [] }] };
  const schema = { ...documented, params };

  app.put<Params & { Body: z.infer<typeof SaleSettings> }>(
    '/admin/sales/:saleId',
    {
      ...adminsOnly,
      schema: {
        ...schema,
        operationId: 'putSale',
        summary: 'Create a sale, or change it to these whole settings',
        'x-told': {
          200: { description: 'Changed: new settings touch new holds only' },
          201: { description: 'Created' },
        },
        'x-refuses': ['total_too_low', 'currency_fixed', 'ended', ...AWAY],
        body: jsonSchema(SaleSettings, 'input'),
        response: { 200: jsonSchema(AdminSale), 201: jsonSchema(AdminSale) },
      },
    },
    async (request, reply) => {
      const wrong = wrongTimes(request.body);
      if (wrong !== undefined) throw new Problem('invalid_request', wrong);
      const { saleId } = request.params;
      const by = byToken(request);
      const put = () => putSale(stores, saleId, request.body, by);
      const { sale, created } = await attempted(stores, by, { action: 'change', saleId }, put);
      const action = created ? 'create' : 'change';
      stores.log.info({ requestId: requestId(request), saleId, action }, 'an admin changed a sale');
      await directory.refresh();
      return reply.code(created ? 201 : 200).send(presentSale(sale, Date.now()));
    },
  );

  for (const action of actionNames) {
    const [summary, act, refuses] = actions[action];
    app.post<Params>(
      `/admin/sales/:saleId/${action}`,
      {
        ...adminsOnly,
        schema: {
          ...schema,
          operationId: `${action}Sale`,
          summary,
          'x-told': { 200: { description: 'As it is now; the same again changes nothing' } },
          'x-refuses': ['sale_not_found', refuses, ...AWAY],
          response: { 200: jsonSchema(AdminSale) },
        },
      },
      async (request) => {
        const { saleId } = request.params;
        const by = byToken(request);
        const sale = await attempted(stores, by, { action, saleId }, () => act(stores, saleId, by));
        stores.log.info({ requestId: requestId(request), saleId, action }, 'an admin changed a sale');
        await directory.refresh();
        return presentSale(sale, Date.now());
      },
    );
  }

  refundRoute(app, api, adminsOnly, documented);
  journalRoute(app, api, adminsOnly, documented);

  app.get(
    '/admin/sales',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'listSales',
        summary: 'All sales',
        'x-told': { 200: { description: 'All of them, closed ones too' } },
        'x-refuses': ['ledger_unavailable'],
        response: { 200: jsonSchema(AdminSales) },
      },
    },
    async () => ({ sales: (await listSales(stores.pool)).map((sale) => presentSale(sale, Date.now())) }),
  );

  app.get<Params>(
    '/admin/sales/:saleId',
    {
      ...adminsOnly,
      schema: {
        ...schema,
        operationId: 'getSaleFigures',
        summary: 'A sale with gate, queue and ledger figures side by side',
        'x-told': { 200: { description: 'A store that is away is null, and named in `away`' } },
        'x-refuses': ['sale_not_found', 'ledger_unavailable'],
        response: { 200: jsonSchema(SaleFigures) },
      },
    },
    async (request) => figures(api, request.params.saleId),
  );

  app.get<Params & { Querystring: z.infer<typeof OrdersQuery> }>(
    '/admin/sales/:saleId/orders',
    {
      ...adminsOnly,
      schema: {
        ...schema,
        operationId: 'listOrders',
        summary: 'Orders of one status, in the order in which they came into it',
        'x-told': {
          200: { description: 'A page. Keep `next`, and pass it as `after` to go on; null: nothing new yet' },
        },
        'x-refuses': ['sale_not_found', 'ledger_unavailable'],
        querystring: jsonSchema(OrdersQuery, 'input'),
        response: { 200: jsonSchema(Orders) },
      },
    },
    async ({ params: { saleId }, query: { status, after, limit } }) => {
      if (!(await directory.find(saleId))) throw new Problem('sale_not_found');
      const { orders, next } = await listOrders(stores.pool, {
        saleId,
        status,
        after: parseCursor(after),
        limit: Number(limit),
      });
      return { orders: orders.map(presentReservation), next: next && `${next.xid}.${next.reservationId}` };
    },
  );
}

function refundRoute(app: FastifyInstance, { stores }: Api, adminsOnly: object, documented: object): void {
  app.post<{ Params: z.infer<typeof ReservationParams>; Body: z.infer<typeof RefundBody> }>(
    '/admin/sales/:saleId/orders/:reservationId/refund',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'refundOrder',
        summary: 'Give the money of a paid order back; its units are for sale again, or leave the sale',
        'x-told': { 200: { description: 'Owed back, once; the keeper pays it out' } },
        'x-refuses': [
          ...(['sale_not_found', 'reservation_not_found', 'not_paid', 'refunded_otherwise'] as const),
          ...(['ended', 'ledger_unavailable'] as const),
        ],
        params: jsonSchema(ReservationParams),
        body: jsonSchema(RefundBody),
        response: { 200: jsonSchema(AdminReservation) },
      },
    },
    async (request) => {
      const { params, body } = request;
      const by = byToken(request);
      const wanted = { ...params, reservationId: ownId(params) };
      const order = await attempted(stores, by, { action: 'refund', saleId: params.saleId }, () =>
        refundReservation(stores, wanted, body.returnUnits, by),
      );
      return presentReservation(order);
    },
  );
}

function parseCursor(text: string | undefined): Cursor {
  const [xid, reservationId] = text?.split('.') ?? [];
  return xid !== undefined && reservationId !== undefined ? { xid, reservationId } : START;
}

export async function figures({ stores, sqs, config }: Api, saleId: string) {
  const sale = await getSale(stores.pool, saleId);
  const ledger = await ledgerFigures(stores.pool, saleId);
  if (!sale || !ledger) throw new Problem('sale_not_found');
  const away: string[] = [];
  const noteIfAway = (name: string, kind: new () => Error) => (error: unknown) => {
    if (!(error instanceof kind)) throw error;
    away.push(`${name}: ${error.message}`);
    return null;
  };
  const [gate, queue] = await Promise.all([
    stores.gate.figures(saleId).catch(noteIfAway('gate', GateUnavailable)),
    queueDepth(sqs, config.SQS_QUEUE_URL, config.QUEUE_TIMEOUT_MS).catch(noteIfAway('queue', QueueUnavailable)),
  ]);
  const { now, ...units } = gate ?? { now: Date.now() };
  return { ...presentSale(sale, now), gate: gate ? units : null, queue, ledger, away };
}

/** What the room lists: sales, reservations by buyer and status, the admin journal. Only for whoever is signed in. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { OrderStatus, SaleId } from '../../domain/reservation.ts';
import { soldUnits } from '../../ledger/backlog.ts';
import { newestJournal } from '../../ledger/journal.ts';
import { listSales, type Cursor } from '../../ledger/sales.ts';
import { searchOrders } from '../../ledger/search.ts';
import { presentEntry } from '../journal.ts';
import { Problem } from '../problem.ts';
import { presentReservation } from '../reservations.ts';
import { presentSale } from '../sales.ts';
import { jsonSchema, OrdersQuery, SaleParams } from '../schemas.ts';
import type { Ops } from './routes.ts';

const PAGE = 25;
const JournalQuery = z.strictObject({
  sale: SaleId.optional(),
  before: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
});
const ReservationsQuery = z.strictObject({
  status: OrderStatus.optional(),
  /** How the buyer's id begins. */
  buyer: z
    .string()
    .regex(/^[\x21-\x7e]{0,128}$/)
    .default(''),
  before: OrdersQuery.shape.after,
});

export function listRoutes(scope: FastifyInstance, { api, sessions }: Ops): void {
  const { pool } = api.stores;
  const signedIn = {
    ...api.inTime,
    onRequest: async (request: FastifyRequest) => {
      await sessions.must(request);
    },
  };

  scope.get('/ops/sales', { ...signedIn, schema: { hide: true } }, async () => {
    const [sales, living] = await Promise.all([listSales(pool), soldUnits(pool)]);
    const sold = new Map(living.map((units) => [units.saleId, units.sold]));
    const now = Date.now();
    return {
      // A closed sale's total is what was sold.
      sales: sales.map((sale) => ({ ...presentSale(sale, now), sold: sold.get(sale.saleId) ?? sale.total })),
    };
  });

  scope.get<{ Params: z.infer<typeof SaleParams>; Querystring: z.infer<typeof ReservationsQuery> }>(
    '/ops/sales/:saleId/reservations',
    {
      ...signedIn,
      schema: { hide: true, params: jsonSchema(SaleParams), querystring: jsonSchema(ReservationsQuery, 'input') },
    },
    async ({ params: { saleId }, query: { status, buyer, before } }) => {
      if (!(await api.directory.find(saleId))) throw new Problem('sale_not_found');
      const statuses = status === undefined ? OrderStatus.options : [status];
      const wanted = { saleId, statuses, buyer, before: cursorFrom(before), limit: PAGE };
      const { orders, next } = await searchOrders(pool, wanted);
      return { orders: orders.map(presentReservation), next: next && `${next.xid}.${next.reservationId}` };
    },
  );

  scope.get<{ Querystring: z.infer<typeof JournalQuery> }>(
    '/ops/journal',
    { ...signedIn, schema: { hide: true, querystring: jsonSchema(JournalQuery, 'input') } },
    async ({ query: { sale = null, before } }) => {
      const last = before === undefined ? null : Number(before);
      const entries = await newestJournal(pool, { saleId: sale, before: last, limit: PAGE });
      const next = entries.length === PAGE ? entries.at(-1)?.entryId : undefined;
      return { entries: entries.map(presentEntry), next: next === undefined ? null : String(next) };
    },
  );
}

function cursorFrom(text: string | undefined): Cursor | null {
  const [xid, reservationId] = text?.split('.') ?? [];
  return xid !== undefined && reservationId !== undefined ? { xid, reservationId } : null;
}

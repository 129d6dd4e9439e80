/** GET and DELETE /sales/{saleId}/reservations/{reservationId}: what became of a press, and giving it up. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { ReservationId } from '../domain/reservation.ts';
import { cancelReservation, findReservation } from '../operations/cancel.ts';
import type { Api } from './app.ts';
import { Problem } from './problem.ts';
import { BuyerQuery, jsonSchema, refusal, Reservation, ReservationParams } from './schemas.ts';

type Request = { Params: z.infer<typeof ReservationParams>; Querystring: z.infer<typeof BuyerQuery> };

/** Times as RFC 3339, members that have nothing to say left out. */
export function presentReservation<T extends { reservedAt: number; expiresAt: number }>(found: T) {
  const members: [string, unknown][] = Object.entries(found);
  const told = Object.fromEntries(members.filter(([, value]) => value !== null));
  return {
    ...(told as T),
    reservedAt: new Date(found.reservedAt).toISOString(),
    expiresAt: new Date(found.expiresAt).toISOString(),
  };
}

/** Anything but a UUID cannot be one of ours, and the ledger would not understand it. */
export function ownId({ reservationId }: Pick<Request['Params'], 'reservationId'>): string {
  if (!ReservationId.safeParse(reservationId).success) throw new Problem('reservation_not_found');
  return reservationId.toLowerCase();
}

export function reservationRoutes(app: FastifyInstance, { stores, buyersOnly, inTime }: Api): void {
  const wanted = ({ params, query }: { params: Request['Params']; query: Request['Querystring'] }) => {
    return { ...params, reservationId: ownId(params), userId: query.userId };
  };
  const schema = {
    tags: ['buyers'],
    security: [{ storefront: [] }],
    params: jsonSchema(ReservationParams),
    querystring: jsonSchema(BuyerQuery),
  };
  app.get<Request>(
    '/sales/:saleId/reservations/:reservationId',
    {
      ...buyersOnly,
      ...inTime,
      schema: {
        ...schema,
        summary: 'A reservation of this buyer. 404 can also mean that gate and queue lost it together',
        response: { 200: jsonSchema(Reservation), default: refusal },
      },
    },
    async (request) => {
      const found = await findReservation(stores, wanted(request));
      if (!found) throw new Problem('reservation_not_found');
      return presentReservation(found);
    },
  );
  app.delete<Request>(
    '/sales/:saleId/reservations/:reservationId',
    {
      ...buyersOnly,
      ...inTime,
      schema: {
        ...schema,
        summary: 'Give up an unpaid reservation',
        response: { 204: { type: 'null' }, default: refusal },
      },
    },
    async (request, reply) => {
      const order = await cancelReservation(stores, wanted(request));
      if (!order) throw new Problem('reservation_not_found');
      if (order.status === 'PAID') throw new Problem('already_paid');
      return reply.code(204).send();
    },
  );
}

/** GET and DELETE /sales/{saleId}/reservations/{reservationId}: what became of a press, and giving it up. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { ReservationId } from '../domain/reservation.ts';
import { cancelReservation, findReservation } from '../operations/cancel.ts';
import type { Api } from './app.ts';
import { Problem } from './problem.ts';
import { requestId } from './request-id.ts';
import { jsonSchema, Reservation, ReservationParams, type BuyerQuery } from './schemas.ts';

export type ReservationRequest = { Params: z.infer<typeof ReservationParams>; Querystring: z.infer<typeof BuyerQuery> };

export const AWAY = ['gate_unavailable', 'ledger_unavailable', 'overloaded'] as const;

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
export function ownId({ reservationId }: Pick<ReservationRequest['Params'], 'reservationId'>): string {
  if (!ReservationId.safeParse(reservationId).success) throw new Problem('reservation_not_found');
  return reservationId.toLowerCase();
}

/** Which reservation a request is about, and whose. @throws {Problem} */
export function wantedBy(request: FastifyRequest<ReservationRequest>, buyers: Api['buyers']) {
  const { params, query } = request;
  const userId = buyers.who(request, query.userId);
  return { ...params, reservationId: ownId(params), userId };
}

export function reservationRoutes(app: FastifyInstance, { stores, buyers, admission, inTime }: Api): void {
  const schema = {
    tags: ['buyers'],
    security: buyers.security,
    params: jsonSchema(ReservationParams),
    querystring: buyers.query,
  };
  app.get<ReservationRequest>(
    '/sales/:saleId/reservations/:reservationId',
    {
      ...buyers.check,
      ...admission.careful,
      ...inTime,
      schema: {
        ...schema,
        operationId: 'getReservation',
        summary: 'A reservation of this buyer. 404 can also mean that gate and queue lost it together',
        'x-told': { 200: { description: 'As it is now' } },
        'x-refuses': ['reservation_not_found', ...AWAY],
        response: { 200: jsonSchema(Reservation) },
      },
    },
    async (request) => {
      const found = await findReservation(stores, wantedBy(request, buyers));
      if (!found) throw new Problem('reservation_not_found');
      return presentReservation(found);
    },
  );
  app.delete<ReservationRequest>(
    '/sales/:saleId/reservations/:reservationId',
    {
      ...buyers.check,
      ...admission.careful,
      ...inTime,
      schema: {
        ...schema,
        operationId: 'cancelReservation',
        summary: 'Give up an unpaid reservation',
        'x-told': { 204: { description: 'Given up, now or before' } },
        'x-refuses': ['reservation_not_found', 'already_paid', ...AWAY],
        response: { 204: { type: 'null' } },
      },
    },
    async (request, reply) => {
      const order = await cancelReservation(stores, wantedBy(request, buyers));
      if (!order) throw new Problem('reservation_not_found');
      if (order.status === 'PAID') throw new Problem('already_paid');
      const { reservationId, saleId, status } = order;
      stores.log.debug({ requestId: requestId(request), reservationId, saleId, status }, 'a reservation is given up');
      return reply.code(204).send();
    },
  );
}

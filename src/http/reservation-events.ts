/**
 * GET /sales/{saleId}/reservations/{reservationId}/events: the reservation as GET tells it, now and whenever it changes,
 * until it is paid or over. Whoever may read it may listen.
 */
import type { FastifyInstance } from 'fastify';
import { GateUnavailable } from '../gate/gate.ts';
import type { Wanted } from '../ledger/orders.ts';
import type { Found } from '../operations/cancel.ts';
import { findReservations } from '../operations/find.ts';
import type { Api } from './app.ts';
import { eventRoute, lastEventId } from './event-schemas.ts';
import { awayBy, FanOut, type Reading } from './fan-out.ts';
import { AWAY, presentReservation, wantedBy, type ReservationRequest } from './reservations.ts';
import { jsonSchema, Reservation, ReservationParams } from './schemas.ts';

const EVENT = 'reservation';
const MAY_CHANGE: Found['status'][] = ['QUEUED', 'PENDING_PAYMENT'];

/** Another buyer's is another topic, which nobody finds. None of the three has a space in it. */
const topicOf = ({ saleId, reservationId, userId }: Wanted) => `${saleId} ${reservationId} ${userId}`;
function wantedIn(topic: string): Wanted {
  const [saleId = '', reservationId = '', userId = ''] = topic.split(' ');
  return { saleId, reservationId, userId };
}

function readingOf(found: Found | GateUnavailable | undefined): Reading {
  if (found instanceof GateUnavailable) return awayBy(found);
  if (!found) return { away: 'reservation_not_found' };
  const data = JSON.stringify(Reservation.parse(presentReservation(found))); // no more members than the answer has
  return { event: EVENT, data, last: !MAY_CHANGE.includes(found.status) };
}

export function reservationEventsRoute(app: FastifyInstance, api: Api): void {
  const { stores, buyers, admission, inTime, streams, config } = api;
  const fanOut = new FanOut({
    name: 'reservations',
    everyMs: config.EVENT_POLL_MS,
    log: stores.log,
    waitsFor: [], // until it is found nobody knows whose it is
    read: async (topics) => {
      const found = await findReservations(stores, topics.map(wantedIn));
      return new Map(topics.map((topic, n) => [topic, readingOf(found[n])]));
    },
  });
  app.get<ReservationRequest>(
    '/sales/:saleId/reservations/:reservationId/events',
    {
      ...buyers.check,
      ...admission.careful,
      ...inTime, // until the stream begins
      ...eventRoute(EVENT, 'Reservation', {
        operationId: 'reservationEvents',
        summary:
          'A reservation of this buyer, now and whenever it changes, as server-sent events until it is paid or over',
        security: buyers.security,
        'x-refuses': ['reservation_not_found', ...AWAY],
        params: jsonSchema(ReservationParams),
        querystring: buyers.query,
      }),
    },
    async (request, reply) => {
      const open = () => streams.open(EVENT, reply);
      const told = await fanOut.listen(topicOf(wantedBy(request, buyers)), lastEventId(request), open);
      return told ? reply : reply.code(204).send();
    },
  );
}

/** POST /sales/{saleId}/reserve: the press of Buy. */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { crashPoint } from '../crash.ts';
import type { Hold } from '../domain/reservation.ts';
import { enqueue } from '../operations/enqueue.ts';
import { contextFrom, inSpan, SpanKind } from '../span.ts';
import type { Api } from './app.ts';
import { count, latched } from './counts.ts';
import { sendSoldOut, type SoldOut } from './may-return.ts';
import { sendProblem, type ProblemCode } from './problem.ts';
import { requestId, tellRequestId } from './request-id.ts';
import { atEndOfTurn } from './turn.ts';
import { jsonSchema, Reserved, SaleParams, type ReserveBody } from './schemas.ts';

const REFUSES: ProblemCode[] = [
  ...(['sold_out', 'not_started', 'ended', 'qty_over_limit', 'paused', 'rate_limited', 'sale_not_found'] as const),
  ...(['gate_not_loaded', 'gate_unavailable', 'queue_unavailable', 'ledger_unavailable', 'overloaded'] as const),
];

type Request = { Params: z.infer<typeof SaleParams>; Body: z.infer<typeof ReserveBody> };

const RESERVE = '/sales/:saleId/reserve';

export function reserveRoute(app: FastifyInstance, { directory, stores, config, buyers, admission }: Api): void {
  app.post<Request>(
    RESERVE,
    {
      ...buyers.check,
      schema: {
        tags: ['buyers'],
        security: buyers.security,
        operationId: 'reserve',
        summary: 'The press of Buy: reserve units',
        'x-told': {
          200: { description: 'The buyer’s own reservation, which they had already', headers: ['Location'] },
          202: { description: 'Won: to be paid before `expiresAt`', headers: ['Location'] },
        },
        'x-refuses': REFUSES,
        params: jsonSchema(SaleParams),
        body: buyers.body,
        response: { 200: jsonSchema(Reserved), 202: jsonSchema(Reserved) },
      },
    },
    // Not async, and nothing returned: a refusal that this process knows by itself needs no promise.
    (request, reply) => {
      const { saleId } = request.params;
      const { qty } = request.body;
      const userId = buyers.who(request, request.body.userId);
      const sale = directory.known(saleId);
      if (sale?.state === 'open' && qty <= sale.maxPerReservation && stores.gate.refuses(saleId, userId, qty)) {
        latched.count += 1;
        refuse({ reply, known: directory.mayReturn.soldOut(sale) });
        return;
      }
      return traced(request, reply, userId);
    },
  );

  const traced = (request: FastifyRequest<Request>, reply: FastifyReply, userId: string) => {
    const { saleId } = request.params;
    const about = { 'http.request.method': 'POST', 'http.route': RESERVE, 'flashgate.sale_id': saleId };
    const of = { kind: SpanKind.SERVER, attributes: about, parent: contextFrom(request.headers) };
    return inSpan('reserve', of, async (span) => {
      const answered = await askGate(request, reply, userId);
      span?.setAttribute('http.response.status_code', reply.statusCode);
      return answered;
    });
  };

  const askGate = async (request: FastifyRequest<Request>, reply: FastifyReply, userId: string) => {
    const deadline = (request.since ?? performance.now()) + config.REQUEST_DEADLINE_MS;
    const { saleId } = request.params;
    const { qty } = request.body;
    const sale = directory.known(saleId) ?? (await directory.find(saleId));
    if (!sale) return sendProblem(reply, 'sale_not_found');
    if (sale.state === 'closed') return sendProblem(reply, 'ended');
    if (!stores.gate.joins(saleId, userId, qty)) {
      // A process that is behind lets one batch wait, not all: the gate goes on being asked, and the latch with it.
      if (admission.late() && stores.gate.waiting(saleId) >= config.GATE_BATCH) return sendProblem(reply, 'overloaded');
      if (admission.press) await admission.press(request);
    }
    const asking = { userId, reservationId: randomUUID(), qty };
    const answer = await inSpan('gate reserve', { kind: SpanKind.CLIENT }, async (span) => {
      const told = await stores.gate.reserve(saleId, asking, deadline);
      span?.setAttribute('flashgate.outcome', told.outcome);
      if ('hold' in told) span?.setAttribute('flashgate.reservation_id', told.hold.reservationId);
      return told;
    });
    switch (answer.outcome) {
      case 'ok':
      case 'dup':
        crashPoint('gate_decided');
        // Nobody is told of a hold that the queue does not have.
        if (answer.outcome === 'ok' || !answer.queued) await enqueue(stores, answer.hold, deadline);
        stores.log.debug(
          { requestId: requestId(request), saleId, reservationId: answer.hold.reservationId, outcome: answer.outcome },
          'a hold is told',
        );
        return sendHold(tellRequestId(request, reply), answer.outcome, answer.hold, buyers.locationQuery(userId));
      case 'not_loaded':
      case 'loading':
        return sendProblem(reply, 'gate_not_loaded');
      case 'not_started':
        return sendProblem(reply, 'not_started', { startsAt: new Date(sale.startsAt).toISOString() });
      case 'qty_over_limit':
        return sendProblem(reply, 'qty_over_limit', { maxPerReservation: sale.maxPerReservation });
      case 'sold_out':
        return sendSoldOut(reply, directory.mayReturn.soldOut(sale));
      case 'paused':
      case 'ended':
        return sendProblem(reply, answer.outcome);
    }
  };
}

const refuse = atEndOfTurn(
  ({ reply, known }: { reply: FastifyReply; known: SoldOut }) => void sendSoldOut(reply, known),
);

function sendHold(reply: FastifyReply, outcome: 'ok' | 'dup', hold: Hold, query: string): FastifyReply {
  count(outcome);
  return reply
    .code(outcome === 'ok' ? 202 : 200)
    .header('location', `/sales/${hold.saleId}/reservations/${hold.reservationId}${query}`)
    .send({
      outcome,
      ...hold,
      reservedAt: new Date(hold.reservedAt).toISOString(),
      expiresAt: new Date(hold.expiresAt).toISOString(),
    });
}

/**
 * The stream of this browser's own reservation: flashgate's, which needs the service token, handed through to the page.
 * That of the sale is public, and the page listens to it by itself.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config.ts';
import type { Visit } from './view.ts';

const TOLD_ON = ['content-type', 'cache-control', 'x-accel-buffering', 'retry-after'];

/** 204, which ends a reader's asking, where there is nothing to listen to. */
export async function reservationEvents(
  app: FastifyInstance,
  { SERVICE_TOKEN: [token] }: Config,
  { saleId, session }: Pick<Visit, 'saleId' | 'session'>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const reservationId = session.holds[saleId];
  if (reservationId === undefined) return reply.code(204).send();
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const { 'last-event-id': last } = request.headers;
  const answer = await app.inject({
    url: `/sales/${saleId}/reservations/${reservationId}/events`,
    query: { userId: session.buyer },
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(typeof last === 'string' && { 'last-event-id': last }),
    },
    payloadAsStream: true,
    signal: gone.signal,
  });
  for (const name of TOLD_ON) if (answer.headers[name] !== undefined) void reply.header(name, answer.headers[name]);
  return reply.code(answer.statusCode).send(answer.statusCode === 204 ? undefined : answer.stream());
}

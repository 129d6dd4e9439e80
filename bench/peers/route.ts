/**
 * What the plain designs have in common: flashgate's own route, schema and answers, without anything around them. Each
 * design adds its decision and nothing else.
 */
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { z } from 'zod';
import { jsonSchema, Reserved, ReserveBody, SaleParams } from '../../src/http/schemas.ts';
import { PROBLEM_TYPE, problemBody } from '../../src/http/problem.ts';
import { ready } from '../lib/child.ts';

export type Buyer = { saleId: string; userId: string; qty: number };
export type Order = { reservationId: string; qty: number; amount: number; reservedAt: Date; expiresAt: Date };
export type Decision = 'sold_out' | 'overloaded' | { outcome: 'ok' | 'dup'; order: Order };

const SOLD_OUT = problemBody('sold_out', { mayReturn: true });
const OVERLOADED = problemBody('overloaded');

export function sendSoldOut(reply: FastifyReply): FastifyReply {
  return reply.header('retry-after', '600').code(409).header('content-type', PROBLEM_TYPE).send(SOLD_OUT);
}

type Request = { Params: z.infer<typeof SaleParams>; Body: z.infer<typeof ReserveBody> };
type Handler = (buyer: Buyer, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;

/** Answers one product, for the rest of the shop. */
export type Catalogue = (productId: number) => Promise<object>;

/** Listens on a free port, tells it to the bench, with whether there is a catalogue, and ends with it. */
export async function serve(handler: Handler, close: () => Promise<unknown>, catalogue?: Catalogue) {
  const app = Fastify();
  addRoute(app, handler);
  app.get('/livez', () => Promise.resolve({ status: 'ok' }));
  if (catalogue) {
    app.get<{ Params: { productId: string } }>('/catalogue/:productId', ({ params }) =>
      catalogue(Number(params.productId)),
    );
  }
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  ready({ port: Number(port), catalogue: catalogue !== undefined }, async () => {
    await close();
  });
}

function addRoute(app: FastifyInstance, handler: Handler): void {
  const schema = {
    params: jsonSchema(SaleParams),
    body: jsonSchema(ReserveBody, 'input'),
    response: { 200: jsonSchema(Reserved), 202: jsonSchema(Reserved) },
  };
  app.post<Request>('/sales/:saleId/reserve', { schema }, (request, reply) =>
    handler({ saleId: request.params.saleId, ...request.body }, reply),
  );
}

export type Decide = (buyer: Buyer) => Promise<Decision>;

/** A design that decides with a promise. */
export function serveDecisions(decide: Decide, close: () => Promise<unknown>, catalogue?: Catalogue) {
  const handler: Handler = async (buyer, reply) => {
    const decision = await decide(buyer);
    if (decision === 'sold_out') return sendSoldOut(reply);
    if (decision === 'overloaded') return reply.code(503).header('content-type', PROBLEM_TYPE).send(OVERLOADED);
    const { outcome, order } = decision;
    const { saleId, userId } = buyer;
    return reply.code(outcome === 'ok' ? 202 : 200).send({
      ...{ outcome, saleId, userId, currency: 'EUR' },
      ...order,
      reservedAt: order.reservedAt.toISOString(),
      expiresAt: order.expiresAt.toISOString(),
    });
  };
  return serve(handler, close, catalogue);
}

/**
 * What the plain designs have in common: flashgate's own route, schema and answers, without anything around them. Each
 * design adds its decision and nothing else.
 */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { jsonSchema, Reserved, ReserveBody, SaleParams } from '../../src/http/schemas.ts';
import { PROBLEM_TYPE, problemBody } from '../../src/http/problem.ts';
import { ready } from '../lib/child.ts';

/** Who wants how many units. */
export type Buyer = { saleId: string; userId: string; qty: number };
/** `amount` in minor units, of the whole order. */
export type Order = { reservationId: string; qty: number; amount: number; reservedAt: Date; expiresAt: Date };
/** What a design says to a buyer; `overloaded` is answered 503. */
export type Decision = 'sold_out' | 'overloaded' | { outcome: 'ok' | 'dup'; order: Order };

/** The document that every design answers when nothing is left. */
export const SOLD_OUT = problemBody('sold_out', { mayReturn: true });
const OVERLOADED = problemBody('overloaded');

/** @param body the document, as text, or as an object that is written anew */
export function sendSoldOut(reply: FastifyReply, body: unknown = SOLD_OUT): FastifyReply {
  return reply.header('retry-after', '600').code(409).header('content-type', PROBLEM_TYPE).send(body);
}

/** JSON schemas of answers by status. */
type Responses = Record<number, object>;
type Request = { Params: z.infer<typeof SaleParams>; Body: z.infer<typeof ReserveBody> };
type Press = FastifyRequest<Request>;
type Handler = (request: Press, reply: FastifyReply) => FastifyReply | Promise<FastifyReply> | undefined;

/** Answers one product, for the rest of the shop. */
export type Catalogue = (productId: number) => Promise<object>;

type Serving = {
  /** Lets go of what the design has open. */
  close?: () => Promise<unknown>;
  /** Further schemas of answers, which Fastify compiles into serialisers. */
  responses?: Responses;
  catalogue?: Catalogue;
};

/** Listens on a free port, tells it to the bench, with whether there is a catalogue, and ends with it. */
export async function serve(handler: Handler, { close, responses = {}, catalogue }: Serving = {}): Promise<void> {
  const app = Fastify();
  addRoute(app, handler, responses);
  app.get('/livez', () => Promise.resolve({ status: 'ok' }));
  if (catalogue) {
    app.get<{ Params: { productId: string } }>('/catalogue/:productId', ({ params }) =>
      catalogue(Number(params.productId)),
    );
  }
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  ready({ port: Number(port), catalogue: catalogue !== undefined }, async () => {
    await close?.();
  });
}

function addRoute(app: FastifyInstance, handler: Handler, responses: Responses): void {
  const schema = {
    params: jsonSchema(SaleParams),
    body: jsonSchema(ReserveBody, 'input'),
    response: { 200: jsonSchema(Reserved), 202: jsonSchema(Reserved), ...responses },
  };
  app.post<Request>('/sales/:saleId/reserve', { schema }, handler);
}

/** Asked once per request; what it throws is answered 500. */
export type Decide = (buyer: Buyer) => Promise<Decision>;

/** A design that decides with a promise. */
export function serveDecisions(decide: Decide, serving: Serving): Promise<void> {
  const handler: Handler = async (request, reply) => {
    const buyer = { saleId: request.params.saleId, ...request.body };
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
  return serve(handler, serving);
}

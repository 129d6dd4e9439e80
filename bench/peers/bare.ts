/** No design at all: Fastify's price of an answer. Everybody is told "sold out", from a text made once. */
import Fastify from 'fastify';
import { PROBLEM_TYPE, problemBody } from '../../src/http/problem.ts';
import { jsonSchema, Reserved, ReserveBody, SaleParams } from '../../src/http/schemas.ts';
import { ready } from '../lib/child.ts';

const SOLD_OUT = problemBody('sold_out', { mayReturn: true });
const response: Record<string, object> = { 200: jsonSchema(Reserved), 202: jsonSchema(Reserved) };

const app = Fastify();
app.post(
  '/sales/:saleId/reserve',
  { schema: { params: jsonSchema(SaleParams), body: jsonSchema(ReserveBody, 'input'), response } },
  (_request, reply) => reply.header('retry-after', '600').code(409).header('content-type', PROBLEM_TYPE).send(SOLD_OUT),
);
app.get('/livez', () => Promise.resolve({ status: 'ok' }));
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
ready({ port: Number(port) }, () => undefined);

/** As bare.ts, with the answer as an object that Fastify's compiled serialiser writes each time. */
import Fastify from 'fastify';
import { jsonSchema, ReserveBody, SaleParams } from '../../src/http/schemas.ts';
import { PROBLEM_TYPE, problemBody } from '../../src/http/problem.ts';
import { ready } from '../lib/child.ts';

const answer = JSON.parse(problemBody('sold_out')) as object;
const text = { type: 'string' };
const response = {
  409: { type: 'object', properties: { type: text, title: text, status: { type: 'integer' }, code: text } },
};

const app = Fastify();
app.post(
  '/sales/:saleId/reserve',
  { schema: { params: jsonSchema(SaleParams), body: jsonSchema(ReserveBody, 'input'), response } },
  (_request, reply) => reply.code(409).header('content-type', PROBLEM_TYPE).send(answer),
);
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
ready({ port: Number(port) }, () => undefined);

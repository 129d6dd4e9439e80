/** As bare.ts, with the answer as an object that Fastify's compiled serialiser writes each time. */
import { sendSoldOut, serve, SOLD_OUT } from './route.ts';

const answer = JSON.parse(SOLD_OUT) as Record<string, unknown>;
const type = { string: 'string', number: 'integer', boolean: 'boolean' } as const;
const properties = Object.fromEntries(
  Object.entries(answer).map(([name, value]) => [name, { type: type[typeof value as keyof typeof type] }]),
);

await serve((_, reply) => sendSoldOut(reply, answer), { responses: { 409: { type: 'object', properties } } });

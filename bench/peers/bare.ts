/** No design at all: Fastify's price of an answer. Everybody is told "sold out", from a text made once. */
import { sendSoldOut, serve } from './route.ts';

await serve((_, reply) => sendSoldOut(reply));

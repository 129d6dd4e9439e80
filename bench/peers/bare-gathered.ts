/** As bare.ts, with flashgate's own trick: the answers of one turn of the event loop are written together. */
import type { FastifyReply } from 'fastify';
import { atEndOfTurn } from '../../src/http/turn.ts';
import { sendSoldOut, serve } from './route.ts';

const refuse = atEndOfTurn((reply: FastifyReply) => void sendSoldOut(reply));

await serve((_, reply) => {
  refuse(reply);
  return undefined;
});

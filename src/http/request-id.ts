/**
 * The id by which a request is found in the log: the caller's `x-request-id`, or the trace id of its `traceparent`, if
 * it is well-formed; a new one otherwise. Made when somebody asks for it, which the path of a refusal does not.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const WELL_FORMED = /^[\w.:/+=@-]{1,128}$/;
/** W3C Trace Context, level 1: version, trace id, parent id, flags. All zeros are no id. */
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;

const ids = new WeakMap<FastifyRequest, string>();

export function requestId(request: FastifyRequest): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const { 'x-request-id': given, traceparent } = request.headers;
  const traced = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent)?.[1] : undefined;
  const id = typeof given === 'string' && WELL_FORMED.test(given) ? given : (traced ?? randomUUID());
  ids.set(request, id);
  return id;
}

/** Puts the id into the reply's headers. */
export function tellRequestId(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.header('x-request-id', requestId(request));
}

/** Tells the id with every answer of this scope's routes. What a whole crowd asks is better outside. */
export function tellRequestIds(scope: FastifyInstance): void {
  scope.addHook('onRequest', (request, reply, done) => {
    tellRequestId(request, reply);
    done();
  });
}

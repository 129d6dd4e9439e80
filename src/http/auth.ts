/** Bearer tokens of the storefront's server and of admins: lists, so that they can be rotated. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

const digest = (text: string) => createHash('sha256').update(text).digest();

/**
 * A hook that lets only bearers of one of the tokens pass. Compared by digest, in constant time.
 * @param tokens not empty: a route without a secret is not registered at all
 */
export function bearerOnly(tokens: string[]) {
  const known = tokens.map(digest);
  // The storefront sends the same header with every request: what was good once need not be hashed again.
  let lastGood: string | undefined;
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    if (lastGood !== undefined && request.headers.authorization === lastGood) {
      done();
      return;
    }
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    const given = digest(token ?? '');
    const good = known.map((each) => timingSafeEqual(each, given)).some(Boolean);
    if (token === undefined || !good) {
      done(new Problem('unauthorized'));
      return;
    }
    lastGood = request.headers.authorization;
    done();
  };
}

/** Bearer tokens of the storefront's server and of admins: lists, so that they can be rotated. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

const digest = (text: string) => createHash('sha256').update(text).digest();

/** Compares by digest, in constant time. @returns a function: which of the tokens this is; -1 for none of them */
export function tokenIn(tokens: string[]): (given: string) => number {
  const known = tokens.map(digest);
  return (given) => {
    const wanted = digest(given);
    return known.map((each) => timingSafeEqual(each, wanted)).indexOf(true);
  };
}

/**
 * A hook that lets only bearers of one of the tokens pass.
 * @param tokens not empty: a route without a secret is not registered at all
 */
export function bearerOnly(tokens: string[]) {
  const find = tokenIn(tokens);
  // The storefront sends the same header with every request: what was good once need not be hashed again.
  let lastGood: string | undefined;
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    if (lastGood !== undefined && request.headers.authorization === lastGood) {
      done();
      return;
    }
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    if (token === undefined || find(token) < 0) {
      done(new Problem('unauthorized'));
      return;
    }
    lastGood = request.headers.authorization;
    done();
  };
}

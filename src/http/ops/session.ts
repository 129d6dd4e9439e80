/**
 * Who is signed in to the operations room: a token, signed with a key made from the admin token with which somebody
 * signed in, in a cookie. So every process knows it, there is no other secret to keep, and an admin token that is taken
 * off the list takes its sessions with it. Signing out deletes the cookie; a copy of it would be good until it expires.
 *
 * A change must be asked for by the room's own page: with the session's CSRF token in a header, and, where the browser
 * says where a request comes from, from here.
 */
import { hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors, jwtVerify, SignJWT } from 'jose';
import type { Config } from '../../config.ts';
import type { Actor } from '../../ledger/journal.ts';
import { tokenIn } from '../auth.ts';
import { isFromOwnPage } from '../origin.ts';
import { Problem } from '../problem.ts';
import { requestId } from '../request-id.ts';

const COOKIE = 'flashgate_ops';
/** A shift. */
export const SESSION_SECONDS = 8 * 3600;
const ISSUED = { issuer: 'flashgate', audience: 'flashgate-ops' };
export const CSRF_HEADER = 'x-csrf-token';

/** `expiresAt` in epoch milliseconds. */
export type Session = { id: string; csrf: string; expiresAt: number };

export class Sessions {
  readonly #keys: Uint8Array[];
  readonly #tokens: (given: string) => number;
  readonly #alwaysSecure: boolean;

  constructor({ ADMIN_TOKEN, NODE_ENV }: Pick<Config, 'ADMIN_TOKEN' | 'NODE_ENV'>) {
    this.#keys = ADMIN_TOKEN.map(
      (token) => new Uint8Array(hkdfSync('sha256', token, '', 'flashgate: sessions of the operations room, 1', 32)),
    );
    this.#tokens = tokenIn(ADMIN_TOKEN);
    this.#alwaysSecure = NODE_ENV === 'production';
  }

  /** @throws {Problem} `unauthorized` when that is no admin token */
  async begin(request: FastifyRequest, reply: FastifyReply, token: string): Promise<void> {
    fromHere(request);
    const key = this.#keys[this.#tokens(token)];
    if (!key) throw new Problem('unauthorized', 'This is not an admin token.');
    const signed = await new SignJWT({ csrf: randomBytes(18).toString('base64url') })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer(ISSUED.issuer)
      .setAudience(ISSUED.audience)
      .setJti(randomBytes(9).toString('base64url'))
      .setExpirationTime(`${SESSION_SECONDS} s`)
      .sign(key);
    void reply.setCookie(COOKIE, signed, { ...this.#cookie(request), maxAge: SESSION_SECONDS });
  }

  end(request: FastifyRequest, reply: FastifyReply): void {
    void reply.clearCookie(COOKIE, this.#cookie(request));
  }

  /** @returns undefined for whoever is not signed in */
  async of(request: FastifyRequest): Promise<Session | undefined> {
    const cookie = request.cookies[COOKIE];
    if (cookie === undefined) return undefined;
    for (const key of this.#keys) {
      try {
        const { payload } = await jwtVerify<{ csrf: string; jti: string; exp: number }>(cookie, key, {
          ...{ ...ISSUED, algorithms: ['HS256'], requiredClaims: ['jti', 'exp', 'csrf'] },
        });
        return { id: payload.jti, csrf: payload.csrf, expiresAt: payload.exp * 1000 };
      } catch (error) {
        if (!(error instanceof errors.JOSEError)) throw error; // it is not of this key, or over
      }
    }
    return undefined;
  }

  /** @throws {Problem} `unauthorized` */
  async must(request: FastifyRequest): Promise<Session> {
    const session = await this.of(request);
    if (!session) throw new Problem('unauthorized', 'Sign in at /ops with the admin token.');
    return session;
  }

  /** Who makes a change. @throws {Problem} `unauthorized`, `csrf_token_wrong` */
  async actor(request: FastifyRequest): Promise<Actor> {
    const session = await this.must(request);
    fromHere(request);
    const given = Buffer.from(String(request.headers[CSRF_HEADER] ?? ''));
    const wanted = Buffer.from(session.csrf);
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw new Problem('csrf_token_wrong');
    return { who: 'session', session: session.id, requestId: requestId(request) };
  }

  /** Sent with requests that begin on this host alone, to /ops alone, and in production over TLS alone. */
  #cookie({ protocol }: FastifyRequest) {
    const secure = this.#alwaysSecure || protocol === 'https';
    return { path: '/ops', httpOnly: true, sameSite: 'strict', secure } as const;
  }
}

/** @throws {Problem} `csrf_token_wrong` */
function fromHere(request: FastifyRequest): void {
  if (isFromOwnPage(request) === false) {
    throw new Problem('csrf_token_wrong', 'The request comes from another site’s page.');
  }
}

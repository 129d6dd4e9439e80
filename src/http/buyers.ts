/** Who the buyer is, by AUTH_MODE: whom the storefront's server names, the subject of the buyer's own token, or anybody. */
import type { FastifyInstance, FastifyRequest, RouteShorthandOptions } from 'fastify';
import type { Config } from '../config.ts';
import type { Log } from '../operations/stores.ts';
import { bearerOnly } from './auth.ts';
import { BuyerTokens } from './jwt.ts';
import { remoteKeys } from './keys.ts';
import { Problem } from './problem.ts';
import { BuyerQuery, jsonSchema, ReserveBody } from './schemas.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** In jwt mode: the subject of the token that was checked. */
    buyer: string;
    /** When the check of a token began that was not known, by `performance.now()`: it is part of the request's time. */
    since?: number;
  }
}

/** What the buyers' routes are made with. */
export type Buyers = {
  /** Whether these routes exist at all. */
  served: boolean;
  check: Pick<RouteShorthandOptions, 'onRequest'>;
  security: Record<string, string[]>[];
  body: object;
  query: object;
  /**
   * Who acts.
   * @param named the `userId` of the body or the query, which jwt mode does not need
   * @throws {Problem} `forbidden` when it is not the token's
   */
  who: (request: FastifyRequest, named: string | undefined) => string;
  /** Who acts in a request that has passed: by whom it is counted. */
  of: (request: FastifyRequest) => string;
  /** What a Location needs behind the path to be asked for as it stands. */
  locationQuery: (userId: string) => string;
};

export const SCHEMES = {
  storefront: { type: 'http', scheme: 'bearer', description: 'a token of SERVICE_TOKEN' },
  buyer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'the buyer’s own token; sub is userId' },
  admin: { type: 'http', scheme: 'bearer', description: 'a token of ADMIN_TOKEN' },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description: 'a signature by a secret of WEBHOOK_SECRET, as Standard Webhooks say: `v1,` and HMAC-SHA256 in base64',
  },
  provider: {
    type: 'apiKey',
    in: 'header',
    name: 'stripe-signature',
    description: 'Stripe’s own signature, by a secret of STRIPE_WEBHOOK_SECRET',
  },
} as const;

/** The schemes that there are in this mode. */
export function schemesOf({ AUTH_MODE: mode, PAYMENT_PROVIDER }: Config) {
  const { storefront, buyer, provider, ...always } = SCHEMES;
  return {
    ...(mode === 'service' && { storefront }),
    ...(mode === 'jwt' && { buyer }),
    ...always,
    ...(PAYMENT_PROVIDER === 'stripe' && { provider }),
  };
}

type Named = { userId?: string } | undefined;

/** Named by the caller, who is trusted; the schemas have seen to it that somebody is. */
const named: Omit<Buyers, 'served' | 'check' | 'security'> = {
  body: jsonSchema(ReserveBody, 'input'),
  query: jsonSchema(BuyerQuery),
  who: (_request, userId) => userId as string,
  of: ({ body, query }) => ({ ...(query as Named), ...(body as Named) }).userId ?? '',
  locationQuery: (userId) => `?userId=${encodeURIComponent(userId)}`,
};

export function buyersOf(app: FastifyInstance, config: Config, log: Log): Buyers {
  switch (config.AUTH_MODE) {
    case 'none':
      log.warn({}, 'AUTH_MODE=none: anybody may reserve for anybody. Never use this where buyers can reach it');
      return { ...named, served: true, check: {}, security: [] };
    case 'service': {
      const { SERVICE_TOKEN: tokens } = config;
      const check = { onRequest: bearerOnly(tokens) };
      return { ...named, served: tokens.length > 0, check, security: [{ storefront: [] }] };
    }
    case 'jwt':
      return byOwnToken(app, config, log);
  }
}

function byOwnToken(app: FastifyInstance, config: Config, log: Log): Buyers {
  const tokens = tokensOf(config, log);
  app.decorateRequest('buyer', '');
  app.decorateRequest('since');
  const onRequest: RouteShorthandOptions['onRequest'] = (request, _reply, done) => {
    const authorization = request.headers.authorization ?? '';
    const buyer = tokens.remembered(authorization);
    if (buyer !== undefined) {
      request.buyer = buyer;
      done();
      return;
    }
    request.since = performance.now();
    tokens.verify(authorization).then(
      (verified) => {
        request.buyer = verified;
        done();
      },
      (error: unknown) => done(error as Error),
    );
  };
  return {
    served: true,
    check: { onRequest },
    security: [{ buyer: [] }],
    body: jsonSchema(ReserveBody.partial({ userId: true }), 'input'),
    query: jsonSchema(BuyerQuery.partial()),
    who: (request, userId) => {
      if (userId !== undefined && userId !== request.buyer) throw new Problem('forbidden');
      return request.buyer;
    },
    of: (request) => request.buyer,
    locationQuery: () => '',
  };
}

function tokensOf(config: Config, log: Log): BuyerTokens {
  // config.ts has seen to it that what this mode needs is set.
  const { JWT_ALGORITHM: algorithm = '', JWT_AUDIENCE: audience = '', JWT_ISSUER: issuer = '' } = config;
  const { JWT_SECRET: secrets, JWT_JWKS_URL: jwks } = config;
  const timeoutMs = Math.ceil(config.REQUEST_DEADLINE_MS / 2); // so that gate and queue have some time, too
  const keys =
    jwks === undefined
      ? secrets.map((secret) => new TextEncoder().encode(secret))
      : remoteKeys({ url: new URL(jwks), timeoutMs, onRefresh: () => tokens.forget(), log });
  const tokens = new BuyerTokens({ algorithm, audience, issuer, keys });
  return tokens;
}

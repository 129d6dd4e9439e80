/** What browsers are told: which other origins may call, and headers for whatever a browser may show by itself. */
import cors from '@fastify/cors';
import helmet, { type FastifyHelmetOptions } from '@fastify/helmet';
import type { FastifyInstance } from 'fastify';

/** The routes that a buyer's page calls; nobody else's origin has any business at the others. */
const OF_BUYERS = /^\/sales\//;
const PREFLIGHT_SECONDS = 600;

/**
 * CORS for these origins, on buyers' routes. Call it before any route is added: it looks at each, and answers preflights.
 * @param origins empty: nothing is added, and nothing costs anything
 */
export async function allowOrigins(app: FastifyInstance, origins: string[]): Promise<void> {
  if (origins.length === 0) return;
  app.addHook('onRoute', (route) => {
    if (!OF_BUYERS.test(route.url)) route.config = { ...route.config, ...{ cors: false } };
  });
  await app.register(cors, {
    origin: origins,
    methods: ['GET', 'HEAD', 'POST', 'DELETE'],
    allowedHeaders: ['authorization', 'content-type', 'last-event-id'],
    exposedHeaders: ['location', 'retry-after', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'],
    credentials: false, // tokens come in a header, by the page's own doing: no cookie is ever looked at
    maxAge: PREFLIGHT_SECONDS,
    strictPreflight: false, // its refusal would not be a problem document
  });
}

/** Everything from the own origin alone, nothing inline, in nobody's frame. A route may say otherwise: `helmet: {…}`. */
const HEADERS: FastifyHelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      ...{
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        fontSrc: ["'self'"],
        connectSrc: ["'self'"],
      },
      ...{ baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] },
    },
  },
  strictTransportSecurity: { maxAge: 31_536_000, includeSubDomains: false }, // other hosts decide for themselves
  // For browsers that are gone, or without a meaning for what is here:
  ...{ xDownloadOptions: false, xDnsPrefetchControl: false, xPermittedCrossDomainPolicies: false },
  ...{ xXssProtection: false, originAgentCluster: false },
};

/**
 * Routes that answer with these headers, pages too. Those that a whole crowd asks are better outside: making the headers
 * costs more than a refusal does.
 */
export async function withHeaders(app: FastifyInstance, addRoutes: (scope: FastifyInstance) => void): Promise<void> {
  await app.register(async (scope) => {
    await scope.register(helmet, HEADERS);
    addRoutes(scope);
  });
}

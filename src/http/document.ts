/**
 * GET /openapi.json, and the same as a page to read: GET /docs, by Swagger UI. The page loads nothing from another host, has
 * nothing inline, sends no requests and has no field for a token: what opens a sale does not belong into a page.
 */
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config.ts';

const PREFIX = '/docs';
/** A release changes what these say; none is so urgent that browsers and balancers should not keep them for a while. */
const CACHE = 'public, max-age=600';
const JSON_TYPE = 'application/json; charset=utf-8';

/** As for everything that a browser shows (src/http/browsers.ts), but with the pictures that are in the style sheet. */
const POLICY = {
  'default-src': "'none'",
  ...{ 'script-src': "'self'", 'style-src': "'self'", 'connect-src': "'self'", 'img-src': ["'self'", 'data:'] },
  ...{ 'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'none'" },
};

/** Neither the button nor the locks that ask for one. */
const NO_TOKENS = '.swagger-ui .scheme-container, .swagger-ui .authorization__btn { display: none }';

export function documentRoutes(app: FastifyInstance, { DOCS_PAGE }: Config): void {
  let made: Buffer | undefined;
  // Made once, and one piece of memory however many are waiting for it: some ask by the thousand and never read.
  const document = () => (made ??= Buffer.from(JSON.stringify(app.swagger())));
  app.get('/openapi.json', { schema: { hide: true } }, (_request, reply) =>
    reply.header('cache-control', CACHE).type(JSON_TYPE).send(document()),
  );
  if (DOCS_PAGE) void app.register((scope) => page(scope, document));
}

async function page(scope: FastifyInstance, document: () => Buffer): Promise<void> {
  scope.addHook('onSend', (_request, reply, _payload, done) => {
    if (reply.statusCode === 200) void reply.header('cache-control', CACHE);
    done();
  });
  await scope.register(swaggerUi, {
    routePrefix: PREFIX,
    staticCSP: POLICY,
    theme: { title: 'flashgate', css: [{ filename: 'no-tokens.css', content: NO_TOKENS }] },
    uiConfig: { layout: 'BaseLayout', supportedSubmitMethods: [], docExpansion: 'list', defaultModelsExpandDepth: 0 },
    uiHooks: {
      onRequest: (request, reply, next) => {
        // The plugin would write the document anew for each who asks.
        if (request.routeOptions.url === `${PREFIX}/json`) void reply.type(JSON_TYPE).send(document());
        else next();
      },
    },
  });
}

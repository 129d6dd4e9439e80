/** The API: routes and the rules that hold for all of them. Builds the app; never listens by itself. */
import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance, type RouteShorthandOptions } from 'fastify';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Stores } from '../operations/stores.ts';
import type { PaymentProvider } from '../provider/port.ts';
import { adminRoutes } from './admin.ts';
import { bearerOnly } from './auth.ts';
import { checkoutRoute } from './checkout.ts';
import { Directory } from './directory.ts';
import { errorHandler, onClientError } from './errors.ts';
import { healthRoutes } from './health.ts';
import { sendProblem } from './problem.ts';
import { reservationRoutes } from './reservations.ts';
import { reserveRoute } from './reserve.ts';
import { saleRoute } from './sales.ts';
import { namedSchemas } from './schemas.ts';
import { webhookRoutes } from './webhook.ts';

/** What the routes are given. */
export type Api = {
  stores: Stores;
  sqs: SQSClient;
  config: Config;
  /** What makes pages to pay on, and has events of its own; undefined where that is the shop's business. */
  provider: PaymentProvider | undefined;
  directory: Directory;
  /** The check of who may act for a buyer. */
  buyersOnly: Pick<RouteShorthandOptions, 'onRequest'>;
  /** The deadline of requests that ask the ledger, which allows itself more time than a request has. */
  inTime: Pick<RouteShorthandOptions, 'handlerTimeout'>;
  life: { draining: boolean };
};

export type BuiltApp = { app: FastifyInstance; directory: Directory; drain: () => void };

const BODY_LIMIT = 64 * 1024;
/** How long a new connection may take to send its request when the app closes. */
const SILENT_FOR_MS = 1000;
/** Longer than any id, so that too long a one is told to be wrong, not to be unknown. */
const MAX_PARAM = 512;

export async function buildApp(deps: {
  stores: Stores;
  sqs: SQSClient;
  config: Config;
  logger: Logger;
  provider?: PaymentProvider | undefined;
}): Promise<BuiltApp> {
  const { stores, sqs, config, logger, provider } = deps;
  const onError = errorHandler(stores.log);
  const app = Fastify({
    bodyLimit: BODY_LIMIT,
    keepAliveTimeout: config.KEEP_ALIVE_MS,
    requestTimeout: 30_000,
    connectionTimeout: 0,
    return503OnClosing: false, // what still comes on a kept-alive connection is answered, with Connection: close
    routerOptions: { maxParamLength: MAX_PARAM },
    frameworkErrors: (error, request, reply) => void onError(error, request, reply),
    clientErrorHandler: onClientError,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } },
  });
  app.removeContentTypeParser('text/plain'); // JSON only; Fastify would read text as well
  allowNoBody(app);
  const directory = new Directory(stores, config.REQUEST_DEADLINE_MS);
  const life = { draining: false };
  const inTime = { handlerTimeout: config.REQUEST_DEADLINE_MS };
  const api: Api = { stores, sqs, config, provider, directory, life, inTime, buyersOnly: buyersCheck(config, logger) };

  app.setErrorHandler(onError);
  app.setNotFoundHandler((_request, reply) => sendProblem(reply, 'not_found'));
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'flashgate', description: 'Reservations for flash sales', version: '1' },
      components: {
        securitySchemes: {
          storefront: { type: 'http', scheme: 'bearer', description: 'a token of SERVICE_TOKEN' },
          admin: { type: 'http', scheme: 'bearer', description: 'a token of ADMIN_TOKEN' },
        },
        schemas: namedSchemas(),
      },
    },
  });
  const methods = collectMethods(app);
  healthRoutes(app, api);
  saleRoute(app, api);
  if (config.AUTH_MODE === 'none' || config.SERVICE_TOKEN.length > 0) {
    reserveRoute(app, api);
    reservationRoutes(app, api);
    checkoutRoute(app, api);
  }
  adminRoutes(app, api);
  webhookRoutes(app, api);
  app.get('/openapi.json', { schema: { hide: true } }, () => Promise.resolve(app.swagger()));
  await app.after();
  refuseOtherMethods(app, methods);
  closeConnectionsThatFallIdle(app);
  return { app, directory, drain: () => (life.draining = true) };
}

/** Clients that name a content type with every request also do so where there is no body: DELETE, POST …/pause. */
function allowNoBody(app: FastifyInstance): void {
  // A member named __proto__ is refused like any other that is unknown: the schemas allow none.
  const parse = app.getDefaultJsonParser('ignore', 'ignore');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parse(request, String(body), done);
  });
}

function buyersCheck(config: Config, logger: Logger): Api['buyersOnly'] {
  if (config.AUTH_MODE === 'none') {
    logger.warn({}, 'AUTH_MODE=none: anybody may reserve for anybody. Never use this where buyers can reach it');
    return {};
  }
  return { onRequest: bearerOnly(config.SERVICE_TOKEN) };
}

/** Notes the methods of each path as routes are added. */
function collectMethods(app: FastifyInstance): Map<string, Set<string>> {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    for (const each of [method].flat()) known.add(each);
    methods.set(url, known);
  });
  return methods;
}

/** Any other method on a path that exists is 405, and says what is allowed. */
function refuseOtherMethods(app: FastifyInstance, methods: Map<string, Set<string>>): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  for (const [url, allowed] of [...methods]) {
    const allow = [...allowed].sort().join(', ');
    app.route({
      url,
      method: app.supportedMethods.filter((method) => !allowed.has(method)),
      schema: { hide: true },
      onRequest: (_request, reply, _done) => {
        sendProblem(reply.header('allow', allow), 'method_not_allowed');
      },
      handler: (_request, reply) => reply,
    });
  }
}

/**
 * When the app closes, Node.js closes the connections that are idle at that moment, but those with a request under way
 * would then be kept for KEEP_ALIVE_MS, and the process with them. Nor does it count as idle one on which nothing was
 * ever sent, as browsers open them in advance.
 */
function closeConnectionsThatFallIdle(app: FastifyInstance): void {
  const open = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  app.addHook('preClose', (done) => {
    if (app.server.listening) {
      const begunAt = performance.now();
      const timer = setInterval(() => {
        app.server.closeIdleConnections();
        if (performance.now() - begunAt < SILENT_FOR_MS) return;
        for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
      }, 25);
      app.server.once('close', () => clearInterval(timer));
    }
    done();
  });
}

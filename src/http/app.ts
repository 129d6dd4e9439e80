/** The API: routes and the rules that hold for all of them. Builds the app; never listens by itself. */
import { METHODS } from 'node:http';
import Fastify, { type FastifyInstance, type RouteShorthandOptions } from 'fastify';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Stores } from '../operations/stores.ts';
import type { PaymentProvider } from '../provider/port.ts';
import { adminRoutes } from './admin.ts';
import { admission, type Admission } from './admission.ts';
import { allowOrigins, withHeaders } from './browsers.ts';
import { buyersOf, type Buyers } from './buyers.ts';
import { checkoutRoute } from './checkout.ts';
import { closeConnectionsInPeace } from './closing.ts';
import { Directory } from './directory.ts';
import { documentRoutes } from './document.ts';
import { errorHandler, onClientError } from './errors.ts';
import { EventStreams } from './events.ts';
import { healthRoutes } from './health.ts';
import type { Room } from './ops/room.ts';
import { opsRoutes } from './ops/routes.ts';
import { registerOpenapi } from './openapi.ts';
import { sendProblem } from './problem.ts';
import { tellRequestId, tellRequestIds } from './request-id.ts';
import { reservationEventsRoute } from './reservation-events.ts';
import { reservationRoutes } from './reservations.ts';
import { reserveRoute } from './reserve.ts';
import { saleEventsRoute } from './sale-events.ts';
import { saleRoute } from './sales.ts';
import { webhookAdminRoutes } from './webhook-admin.ts';
import { shopRoutes } from './shop/shop.ts';
import { webhookRoutes } from './webhook.ts';

/** What the routes are given. */
export type Api = {
  stores: Stores;
  sqs: SQSClient;
  config: Config;
  /** What makes pages to pay on, and has events of its own; undefined where that is the shop's business. */
  provider: PaymentProvider | undefined;
  directory: Directory;
  buyers: Buyers;
  admission: Admission;
  streams: EventStreams;
  /** The deadline of requests that ask the ledger, which allows itself more time than a request has. */
  inTime: Pick<RouteShorthandOptions, 'handlerTimeout'>;
  life: { draining: boolean };
};

export type BuiltApp = {
  app: FastifyInstance;
  directory: Directory;
  streams: EventStreams;
  drain: () => void;
};

const BODY_LIMIT = 64 * 1024;
const HEADER_LIMIT = 16 * 1024;
/** Longer than any id, so that too long a one is told to be wrong, not to be unknown. */
const MAX_PARAM = 512;

export async function buildApp(deps: {
  stores: Stores;
  sqs: SQSClient;
  config: Config;
  logger: Logger;
  provider?: PaymentProvider | undefined;
  /** What the operations room may have done; without it there is none. */
  room?: Room | undefined;
}): Promise<BuiltApp> {
  const { stores, sqs, config, logger, provider, room } = deps;
  const onError = errorHandler(stores.log);
  const app = Fastify({
    bodyLimit: BODY_LIMIT,
    keepAliveTimeout: config.KEEP_ALIVE_MS,
    trustProxy: config.TRUST_PROXY.length > 0 ? config.TRUST_PROXY : false,
    // Who sends slowly, who does not read: neither keeps a connection for ever.
    requestTimeout: config.CLIENT_TIMEOUT_MS,
    connectionTimeout: config.CLIENT_TIMEOUT_MS,
    http: {
      maxHeaderSize: HEADER_LIMIT,
      headersTimeout: config.CLIENT_TIMEOUT_MS,
      connectionsCheckingInterval: Math.min(1000, Math.ceil(config.CLIENT_TIMEOUT_MS / 4)),
    },
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
  const buyers = buyersOf(app, config, logger);
  const admitted = await admission(app, config, buyers.of);
  const streams = new EventStreams({ max: config.EVENT_STREAMS_MAX, heartbeatMs: config.EVENT_HEARTBEAT_MS });
  app.addHook('preClose', (done) => {
    streams.close();
    done();
  });
  const api: Api = { stores, sqs, config, provider, directory, life, inTime, buyers, admission: admitted, streams };

  app.setErrorHandler(onError);
  app.setNotFoundHandler((request, reply) => sendProblem(tellRequestId(request, reply), 'not_found'));
  await registerOpenapi(app, config);
  await allowOrigins(app, config.CORS_ORIGINS);
  const paths = collectPaths(app);
  // What a whole crowd asks is answered bare.
  saleRoute(app, api);
  saleEventsRoute(app, api);
  if (buyers.served) reserveRoute(app, api);
  await withHeaders(app, (scope) => {
    tellRequestIds(scope);
    healthRoutes(scope, api);
    if (buyers.served) {
      reservationRoutes(scope, api);
      reservationEventsRoute(scope, api);
      checkoutRoute(scope, api);
    }
    adminRoutes(scope, api);
    webhookAdminRoutes(scope, api);
    webhookRoutes(scope, api);
    documentRoutes(scope, config);
    if (config.SHOP_SAMPLE) void scope.register((shop) => shopRoutes(shop, api));
    if (room && config.OPS_ROOM && config.ADMIN_TOKEN.length > 0)
      void scope.register((own) => opsRoutes(own, api, room));
  });
  await app.after();
  refuseOtherMethods(app, paths);
  closeConnectionsInPeace(app);
  return { app, directory, streams, drain: () => (life.draining = true) };
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

/** Notes each path as routes are added. */
function collectPaths(app: FastifyInstance): Set<string> {
  const paths = new Set<string>();
  app.addHook('onRoute', ({ url }) => void paths.add(url));
  return paths;
}

/** Any other method on a path that exists is 405, and says what is allowed. */
function refuseOtherMethods(app: FastifyInstance, paths: Set<string>): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  for (const url of [...paths]) {
    const allowed = app.supportedMethods.filter((method) => app.hasRoute({ url, method }));
    const allow = allowed.sort().join(', ');
    app.route({
      url,
      method: app.supportedMethods.filter((method) => !allowed.includes(method)),
      schema: { hide: true },
      onRequest: (request, reply, _done) => {
        sendProblem(tellRequestId(request, reply).header('allow', allow), 'method_not_allowed');
      },
      handler: (_request, reply) => reply,
    });
  }
}

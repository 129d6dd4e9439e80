/** Admin: where the shop wants its webhooks, their secrets, the log of deliveries, and having one sent again. */
import type { FastifyInstance, FastifyRequest, FastifySchema, RouteShorthandOptions } from 'fastify';
import type { z } from 'zod';
import { whyNot } from '../domain/address.ts';
import { DeliveryStatus, EndpointSettings, MAX_ENDPOINTS } from '../domain/webhook.ts';
import { listDeliveries, redeliver, type Delivery } from '../ledger/deliveries.ts';
import type { Actor, JournalAction } from '../ledger/journal.ts';
import {
  deleteEndpoint,
  getEndpoint,
  listEndpoints,
  putEndpoint,
  rotateSecret,
  type Endpoint,
} from '../ledger/webhooks.ts';
import { EndpointConflict } from '../operations/endpoints.ts';
import { attempted } from '../operations/journal.ts';
import type { Api } from './app.ts';
import { bearerOnly } from './auth.ts';
import { byToken } from './journal.ts';
import { Problem } from './problem.ts';
import { jsonSchema } from './schemas.ts';
import {
  Deliveries,
  DeliveriesQuery,
  DeliveryParams,
  DeliveryShown,
  EndpointParams,
  EndpointShown,
  Endpoints,
  EndpointWithSecret,
} from './webhook-schemas.ts';

type Params = { Params: z.infer<typeof EndpointParams> };
const params = jsonSchema(EndpointParams);
/** What these routes have in common. */
type Common = { adminsOnly: RouteShorthandOptions; documented: FastifySchema };

export function webhookAdminRoutes(app: FastifyInstance, api: Api): void {
  if (api.config.ADMIN_TOKEN.length === 0) return;
  const adminsOnly = { ...api.inTime, onRequest: bearerOnly(api.config.ADMIN_TOKEN) };
  const common = { adminsOnly, documented: { tags: ['webhooks'], security: [{ admin: [] }] } };
  settingsRoutes(app, api, common);
  secretRoute(app, api, common);
  lookRoutes(app, api, common);
  redeliverRoute(app, api, common);
}

function settingsRoutes(app: FastifyInstance, api: Api, { adminsOnly, documented }: Common): void {
  const { stores, config } = api;
  app.put<Params & { Body: EndpointSettings }>(
    '/admin/webhooks/:endpointId',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'putWebhookEndpoint',
        summary: 'Create an endpoint, or change it to these whole settings',
        'x-told': {
          200: { description: 'Changed; what waits for it goes to the new URL' },
          201: { description: 'Created; its secret is told in this answer only' },
        },
        'x-refuses': ['too_many_endpoints', 'ledger_unavailable'],
        params,
        body: jsonSchema(EndpointSettings, 'input'),
        response: { 200: jsonSchema(EndpointShown), 201: jsonSchema(EndpointWithSecret) },
      },
    },
    async (request, reply) => {
      const { endpointId } = request.params;
      const refused = whyNot(request.body.url, config.WEBHOOKS_ALLOW_PRIVATE);
      if (refused !== undefined) throw new Problem('invalid_request', refused);
      const put = await change(api, request, 'change', async (by) => {
        const done = await putEndpoint(stores.pool, endpointId, request.body, by);
        if (done) return done;
        throw new EndpointConflict('too_many_endpoints', `there are ${MAX_ENDPOINTS} already`);
      });
      return reply.code(put.secret === undefined ? 200 : 201).send(presentEndpoint(put.endpoint, put.secret));
    },
  );

  app.delete<Params>(
    '/admin/webhooks/:endpointId',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'deleteWebhookEndpoint',
        summary: 'Delete an endpoint',
        'x-told': { 204: { description: 'Deleted; what was still to be sent to it is not sent' } },
        'x-refuses': ['endpoint_not_found', 'ledger_unavailable'],
        params,
        response: { 204: { type: 'null' } },
      },
    },
    async (request, reply) => {
      const { endpointId } = request.params;
      await change(api, request, 'delete', async (by) => {
        if (!(await deleteEndpoint(stores.pool, endpointId, by))) throw notFound(endpointId);
      });
      return reply.code(204).send();
    },
  );
}

function secretRoute(app: FastifyInstance, api: Api, { adminsOnly, documented }: Common): void {
  const { stores, config } = api;
  app.post<Params>(
    '/admin/webhooks/:endpointId/rotate',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'rotateWebhookSecret',
        summary: 'A new secret for an endpoint',
        'x-told': {
          200: { description: 'Told in this answer only; the one before signs beside it until `oldSecretUntil`' },
        },
        'x-refuses': ['endpoint_not_found', 'ledger_unavailable'],
        params,
        response: { 200: jsonSchema(EndpointWithSecret) },
      },
    },
    async (request) => {
      const { endpointId } = request.params;
      const rotated = await change(api, request, 'rotate', async (by) =>
        found(endpointId, await rotateSecret(stores.pool, endpointId, config.WEBHOOKS_ROTATION_MS, by)),
      );
      return presentEndpoint(rotated.endpoint, rotated.secret);
    },
  );
}

function lookRoutes(app: FastifyInstance, { stores }: Api, { adminsOnly, documented }: Common): void {
  app.get(
    '/admin/webhooks',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'listWebhookEndpoints',
        summary: 'All endpoints',
        'x-told': { 200: { description: 'All of them, without their secrets' } },
        'x-refuses': ['ledger_unavailable'],
        response: { 200: jsonSchema(Endpoints) },
      },
    },
    async () => ({ endpoints: (await listEndpoints(stores.pool)).map((each) => presentEndpoint(each)) }),
  );

  app.get<Params>(
    '/admin/webhooks/:endpointId',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'getWebhookEndpoint',
        summary: 'An endpoint',
        'x-told': { 200: { description: 'Without its secret' } },
        'x-refuses': ['endpoint_not_found', 'ledger_unavailable'],
        params,
        response: { 200: jsonSchema(EndpointShown) },
      },
    },
    async (request) => {
      const { endpointId } = request.params;
      return presentEndpoint(found(endpointId, await getEndpoint(stores.pool, endpointId)));
    },
  );

  app.get<Params & { Querystring: z.infer<typeof DeliveriesQuery> }>(
    '/admin/webhooks/:endpointId/deliveries',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'listWebhookDeliveries',
        summary: 'The log of deliveries, the newest events first',
        'x-told': { 200: { description: 'A page. Pass `next` as `after` for older ones; null: there are none' } },
        'x-refuses': ['endpoint_not_found', 'ledger_unavailable'],
        params,
        querystring: jsonSchema(DeliveriesQuery, 'input'),
        response: { 200: jsonSchema(Deliveries) },
      },
    },
    async ({ params: { endpointId }, query: { status, after, limit } }) => {
      found(endpointId, await getEndpoint(stores.pool, endpointId));
      const statuses = status === undefined ? DeliveryStatus.options : [status];
      const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
      const log = await listDeliveries(stores.pool, { endpointId, statuses, before, limit: Number(limit) });
      return { deliveries: log.map(presentDelivery), next: log.at(-1)?.no.toString() ?? null };
    },
  );
}

function redeliverRoute(app: FastifyInstance, api: Api, { adminsOnly, documented }: Common): void {
  const { stores } = api;
  app.post<{ Params: z.infer<typeof DeliveryParams> }>(
    '/admin/webhooks/:endpointId/deliveries/:eventId/redeliver',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        operationId: 'redeliverWebhook',
        summary: 'Have an event sent again, under the same id',
        'x-told': { 202: { description: 'It is due now, with all its attempts before it' } },
        'x-refuses': ['endpoint_not_found', 'delivery_not_found', 'ledger_unavailable'],
        params: jsonSchema(DeliveryParams),
        response: { 202: jsonSchema(DeliveryShown) },
      },
    },
    async (request, reply) => {
      const { endpointId, eventId } = request.params;
      const delivery = await change(api, request, 'redeliver', async (by) => {
        found(endpointId, await getEndpoint(stores.pool, endpointId));
        const again = await redeliver(stores.pool, endpointId, eventId, by);
        if (again) return again;
        throw new EndpointConflict('delivery_not_found', `endpoint ${endpointId} has no event ${eventId} in its log`);
      });
      return reply.code(202).send(presentDelivery(delivery));
    },
  );
}

/** A change by an admin. What was done is in the journal by its own transaction, what was refused by this. */
async function change<T>(
  { stores }: Api,
  request: FastifyRequest<Params>,
  action: JournalAction,
  act: (by: Actor) => Promise<T>,
): Promise<T> {
  const { endpointId } = request.params;
  const by = byToken(request);
  const done = await attempted(stores, by, { action, endpointId }, () => act(by));
  stores.log.info({ requestId: by.requestId, endpointId, action }, 'an admin changed an endpoint of webhooks');
  return done;
}

const notFound = (endpointId: string) =>
  new EndpointConflict('endpoint_not_found', `there is no endpoint ${endpointId}`);

function found<T>(endpointId: string, endpoint: T | undefined): T {
  if (endpoint === undefined) throw notFound(endpointId);
  return endpoint;
}

const time = (ms: number) => new Date(ms).toISOString();
/** The member, or nothing of it when it is null. */
const member = <T>(name: string, value: T | null, as: (value: T) => unknown = (same) => same) =>
  value === null ? {} : { [name]: as(value) };

function presentEndpoint({ endpointId, url, events, active, ...times }: Endpoint, secret?: string) {
  return {
    ...{ endpointId, url, events, active, createdAt: time(times.createdAt) },
    ...member('goneAt', times.goneAt, time),
    ...member('holdUntil', times.holdUntil, time),
    ...member('oldSecretUntil', times.oldSecretUntil, time),
    ...member('secret', secret ?? null),
  };
}

function presentDelivery(delivery: Delivery) {
  const { eventId, type, status, attempts, createdAt, updatedAt } = delivery;
  return {
    ...{ eventId, type, status, attempts, createdAt: time(createdAt), updatedAt: time(updatedAt) },
    ...member('lastStatus', delivery.lastStatus),
    ...member('lastAnswer', delivery.lastAnswer),
    ...member('lastError', delivery.lastError),
    ...member('nextAttemptAt', delivery.nextAttemptAt, time),
  };
}

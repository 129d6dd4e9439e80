/** Admin: where the shop wants its webhooks, their secrets, the log of deliveries, and having one sent again. */
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { whyNot } from '../domain/address.ts';
import { DeliveryStatus, EndpointSettings, MAX_ENDPOINTS } from '../domain/webhook.ts';
import { listDeliveries, redeliver, type Delivery } from '../ledger/deliveries.ts';
import {
  deleteEndpoint,
  getEndpoint,
  listEndpoints,
  putEndpoint,
  rotateSecret,
  type Endpoint,
} from '../ledger/webhooks.ts';
import type { Api } from './app.ts';
import { bearerOnly } from './auth.ts';
import { Problem } from './problem.ts';
import { jsonSchema, refusal } from './schemas.ts';
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

export function webhookAdminRoutes(app: FastifyInstance, api: Api): void {
  if (api.config.ADMIN_TOKEN.length === 0) return;
  const adminsOnly = { ...api.inTime, onRequest: bearerOnly(api.config.ADMIN_TOKEN) };
  const documented = { tags: ['admin: webhooks'], security: [{ admin: [] }] };
  endpointRoutes(app, api, adminsOnly, documented);
  secretRoute(app, api, adminsOnly, documented);
  deliveryRoutes(app, api, adminsOnly, documented);
}

function endpointRoutes(app: FastifyInstance, { stores, config }: Api, adminsOnly: object, documented: object): void {
  const schema = { ...documented, params: jsonSchema(EndpointParams) };
  app.put<Params & { Body: EndpointSettings }>(
    '/admin/webhooks/:endpointId',
    {
      ...adminsOnly,
      schema: {
        ...schema,
        summary: 'Create an endpoint, whose secret is told in this answer only, or change it to these whole settings',
        body: jsonSchema(EndpointSettings, 'input'),
        response: { 200: jsonSchema(EndpointShown), 201: jsonSchema(EndpointWithSecret), default: refusal },
      },
    },
    async ({ params, body }, reply) => {
      const refused = whyNot(body.url, config.WEBHOOKS_ALLOW_PRIVATE);
      if (refused !== undefined) throw new Problem('invalid_request', refused);
      const put = await putEndpoint(stores.pool, params.endpointId, body);
      if (!put) throw new Problem('too_many_endpoints', `there are ${MAX_ENDPOINTS} already`);
      return reply.code(put.secret === undefined ? 200 : 201).send(presentEndpoint(put.endpoint, put.secret));
    },
  );

  app.get(
    '/admin/webhooks',
    {
      ...adminsOnly,
      schema: { ...documented, summary: 'All endpoints', response: { 200: jsonSchema(Endpoints), default: refusal } },
    },
    async () => ({ endpoints: (await listEndpoints(stores.pool)).map((each) => presentEndpoint(each)) }),
  );

  app.get<Params>(
    '/admin/webhooks/:endpointId',
    {
      ...adminsOnly,
      schema: { ...schema, summary: 'An endpoint', response: { 200: jsonSchema(EndpointShown), default: refusal } },
    },
    async ({ params }) => presentEndpoint(found(await getEndpoint(stores.pool, params.endpointId))),
  );

  app.delete<Params>(
    '/admin/webhooks/:endpointId',
    {
      ...adminsOnly,
      schema: {
        ...schema,
        summary: 'Delete an endpoint: what was still to be sent to it is not sent',
        response: { 204: { type: 'null', description: 'Deleted' }, default: refusal },
      },
    },
    async ({ params }, reply) => {
      if (!(await deleteEndpoint(stores.pool, params.endpointId))) throw new Problem('endpoint_not_found');
      return reply.code(204).send();
    },
  );
}

function secretRoute(app: FastifyInstance, { stores, config }: Api, adminsOnly: object, documented: object): void {
  app.post<Params>(
    '/admin/webhooks/:endpointId/rotate',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        summary: 'A new secret, told in this answer only; the one before signs beside it until oldSecretUntil',
        params: jsonSchema(EndpointParams),
        response: { 200: jsonSchema(EndpointWithSecret), default: refusal },
      },
    },
    async ({ params }) => {
      const rotated = found(await rotateSecret(stores.pool, params.endpointId, config.WEBHOOKS_ROTATION_MS));
      return presentEndpoint(rotated.endpoint, rotated.secret);
    },
  );
}

function deliveryRoutes(app: FastifyInstance, { stores }: Api, adminsOnly: object, documented: object): void {
  app.get<Params & { Querystring: z.infer<typeof DeliveriesQuery> }>(
    '/admin/webhooks/:endpointId/deliveries',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        summary: 'The log of deliveries, the newest events first',
        params: jsonSchema(EndpointParams),
        querystring: jsonSchema(DeliveriesQuery, 'input'),
        response: { 200: jsonSchema(Deliveries), default: refusal },
      },
    },
    async ({ params: { endpointId }, query: { status, after, limit } }) => {
      found(await getEndpoint(stores.pool, endpointId));
      const statuses = status === undefined ? DeliveryStatus.options : [status];
      const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
      const log = await listDeliveries(stores.pool, { endpointId, statuses, before, limit: Number(limit) });
      return { deliveries: log.map(presentDelivery), next: log.at(-1)?.no.toString() ?? null };
    },
  );

  app.post<{ Params: z.infer<typeof DeliveryParams> }>(
    '/admin/webhooks/:endpointId/deliveries/:eventId/redeliver',
    {
      ...adminsOnly,
      schema: {
        ...documented,
        summary: 'Have an event sent again, under the same id',
        params: jsonSchema(DeliveryParams),
        response: { 202: jsonSchema(DeliveryShown), default: refusal },
      },
    },
    async ({ params: { endpointId, eventId } }, reply) => {
      found(await getEndpoint(stores.pool, endpointId));
      const delivery = await redeliver(stores.pool, endpointId, eventId);
      if (!delivery) throw new Problem('delivery_not_found');
      return reply.code(202).send(presentDelivery(delivery));
    },
  );
}

function found<T>(endpoint: T | undefined): T {
  if (endpoint === undefined) throw new Problem('endpoint_not_found');
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

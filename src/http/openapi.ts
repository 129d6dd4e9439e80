/**
 * /openapi.json. The routes' schemas are its source: each route says beside its schema how it is called (`operationId`),
 * with which problems it refuses and which headers its answers have; here that becomes answers by status, with codes,
 * headers and examples. Tests hold it equal to the routes and to what is really answered.
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config.ts';
import { SCHEMES, schemesOf } from './buyers.ts';
import { problemExamples } from './examples.ts';
import { EVENT_STREAM } from './events.ts';
import { headers, headersOf, type HeaderName } from './openapi-headers.ts';
import { webhooks, webhookParameters, type Signed } from './openapi-webhooks.ts';
import { PROBLEM_TYPE, problems, type ProblemCode } from './problem.ts';
import { namedSchemas, paymentEventSchema } from './schemas.ts';

/** What an answer other than a refusal says, and its headers. */
export type Told = {
  description: string;
  headers?: HeaderName[];
  /** Of a stream: the schema of each event's data, by the event's name. */
  events?: Record<string, string>;
};

declare module 'fastify' {
  interface FastifySchema {
    /** Problems of this route's own; those that any route may have are added, see {@link refusalsOf}. */
    'x-refuses'?: readonly ProblemCode[];
    /** By status. */
    'x-told'?: Record<number, Told>;
    /** The body is a signed payment event, which no schema may touch before its signature is checked. */
    'x-signed'?: Signed;
  }
}

type Response = { description: string; headers?: object; content?: object } | { $ref: string };
type Operation = {
  operationId?: string;
  description?: string;
  responses: Record<string, Response>;
  requestBody?: object;
  parameters?: object[];
  security?: Record<string, string[]>[];
  'x-refuses'?: readonly ProblemCode[];
  'x-told'?: Record<string, Told>;
  'x-signed'?: Signed;
};

const CODES = Object.keys(problems) as ProblemCode[];

/** What any request may be told, some of it before it is known to which route it goes. */
const ANY: ProblemCode[] = ['invalid_request', 'request_timeout', 'headers_too_large', 'internal_error'];
const WITH_BODY: ProblemCode[] = ['payload_too_large', 'unsupported_media_type'];
const BY_SCHEME: Record<keyof typeof SCHEMES, ProblemCode[]> = {
  storefront: ['unauthorized'],
  buyer: ['unauthorized', 'forbidden', 'keys_unavailable', 'rate_limited'],
  admin: ['unauthorized'],
  signature: ['bad_signature', 'timestamp_out_of_range'],
  provider: ['bad_signature', 'timestamp_out_of_range'],
};

const DESCRIPTION = `Reservations for flash sales.

Times are RFC 3339 in UTC, money is in minor units of an ISO 4217 currency. Every 4xx and 5xx is an RFC 9457 document
whose \`code\` says why; a path that does not exist is 404 \`not_found\`, another method on one that does is 405
\`method_not_allowed\` with \`Allow\`, whoever asks. A press, and every other request here, is safe to repeat. Most answers
have \`x-request-id\`, by which the log is searched: the request's own, if it has one.`;

const TAGS = [
  { name: 'buyers', description: 'What a buyer does, by the shop’s server or by themselves' },
  { name: 'payment provider', description: 'What the payment provider reports' },
  { name: 'admin', description: 'Looking after sales' },
  { name: 'health', description: 'For the balancer and whoever watches' },
];

/** Call it before any route is added. The document is then `app.swagger()`. */
export async function registerOpenapi(app: FastifyInstance, config: Config): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'flashgate', description: DESCRIPTION, version: '1', license: { name: 'MIT', identifier: 'MIT' } },
      tags: TAGS,
      components: {
        securitySchemes: schemesOf(config),
        schemas: { ...namedSchemas(), PaymentEvent: paymentEventSchema() },
        headers,
        examples: problemExamples(),
        responses: Object.fromEntries(CODES.map((code) => [code, refusal(problems[code][0], [code])])),
      },
      ...(config.WEBHOOK_SECRET.length > 0 && { webhooks: webhooks() }),
    } as object,
    transformObject: (made) => {
      if (!('openapiObject' in made)) throw new Error('the document is not OpenAPI 3');
      for (const methods of Object.values(made.openapiObject.paths ?? {})) {
        for (const [method, operation] of Object.entries(methods ?? {})) complete(method, operation as Operation);
      }
      return made.openapiObject;
    },
  });
}

function complete(method: string, operation: Operation): void {
  const { 'x-told': told = {}, 'x-signed': signed } = operation;
  for (const [status, { description, headers: names = [], events }] of Object.entries(told)) {
    const response = operation.responses[status];
    if (!response) throw new Error(`${operation.operationId ?? '?'} tells of ${status} without a schema for it`);
    Object.assign(response, { description }, names.length > 0 && { headers: headersOf(names) });
    if (events) Object.assign(response, { content: { [EVENT_STREAM]: eventMedia(events) } });
  }
  if (signed) Object.assign(operation, webhookParameters(signed));
  const [scheme] = schemesIn(operation);
  if (scheme) operation.description = `Needs ${SCHEMES[scheme].description}.`;
  for (const [status, codes] of Map.groupBy(refusalsOf(method, operation), (code) => problems[code][0])) {
    if (operation.responses[status]) throw new Error(`${operation.operationId ?? '?'} has two answers of ${status}`);
    operation.responses[status] = refused(status, codes);
  }
  for (const name of ['x-refuses', 'x-told', 'x-signed'] as const) Reflect.deleteProperty(operation, name);
}

/** OpenAPI 3.1 has no word for the events of a stream; `x-events` names the schema of each one's data. */
function eventMedia(events: Record<string, string>): object {
  const refs = Object.entries(events).map(([event, name]) => [event, { $ref: `#/components/schemas/${name}` }]);
  return { schema: { type: 'string' }, 'x-events': Object.fromEntries(refs) as object };
}

const schemesIn = ({ security = [] }: Operation) =>
  security.flatMap((scheme) => Object.keys(scheme) as (keyof typeof SCHEMES)[]);

/** All codes of an operation, each once, in the order of {@link problems}. */
function refusalsOf(method: string, operation: Operation): ProblemCode[] {
  const codes = new Set([
    ...ANY,
    ...(method === 'get' ? [] : WITH_BODY),
    ...schemesIn(operation).flatMap((scheme) => BY_SCHEME[scheme]),
    ...(operation['x-refuses'] ?? []),
  ]);
  return CODES.filter((code) => codes.has(code));
}

/** Most refusals of a status have one name, and are then the same wherever they are. */
function refused(status: number, codes: ProblemCode[]): Response {
  const [only] = codes;
  return codes.length === 1 && only ? { $ref: `#/components/responses/${only}` } : refusal(status, codes);
}

function refusal(status: number, codes: ProblemCode[]): Response {
  const names: HeaderName[] = codes.includes('sold_out') ? ['RetryAfterSoldOut'] : (HEADERS_BY_STATUS[status] ?? []);
  const schema = {
    allOf: [
      { $ref: '#/components/schemas/Problem' },
      { type: 'object', required: ['code'], properties: { code: { type: 'string', enum: codes } } },
    ],
  };
  const examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  return {
    description: codes.map((code) => `\`${code}\`: ${problems[code][1]}`).join('. '),
    ...(names.length > 0 && { headers: headersOf(names) }),
    content: { [PROBLEM_TYPE]: { schema, examples } },
  };
}

const HEADERS_BY_STATUS: Record<number, HeaderName[]> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  503: ['Retry-After'],
};

/** Every refusal has a name: RFC 9457 problem documents, `urn:flashgate:problem:CODE`. */
import type { FastifyReply } from 'fastify';
import { count } from './counts.ts';

/** All codes, with their HTTP status and title. A test holds this list equal to what OpenAPI says. */
export const problems = {
  invalid_request: [400, 'The request is not valid'],
  malformed_event: [400, 'This is not a payment event'],
  unauthorized: [401, 'A valid token is needed'],
  bad_signature: [401, 'The signature does not fit'],
  wrong_mode: [400, 'This event is of the other mode'],
  timestamp_out_of_range: [401, 'The timestamp is too far from now'],
  forbidden: [403, 'This token is not for that'],
  csrf_token_wrong: [403, 'This change was not asked for by the operations room’s own page'],
  not_found: [404, 'There is nothing here'],
  sale_not_found: [404, 'There is no such sale'],
  reservation_not_found: [404, 'This buyer has no such reservation'],
  endpoint_not_found: [404, 'There is no such endpoint'],
  delivery_not_found: [404, 'The log of this endpoint has no such event'],
  method_not_allowed: [405, 'This method is not allowed here'],
  request_timeout: [408, 'The request did not arrive in time'],
  sold_out: [409, 'None are left'],
  not_started: [409, 'The sale has not started'],
  ended: [409, 'The sale has ended'],
  already_paid: [409, 'The reservation is paid'],
  reservation_ended: [409, 'The reservation is over'],
  not_paid: [409, 'The reservation is not paid'],
  refunded_otherwise: [409, 'The reservation was refunded with its units treated otherwise'],
  total_too_low: [409, 'More than that is held or sold'],
  currency_fixed: [409, 'The currency cannot change any more'],
  not_settled: [409, 'Something is still open in this sale'],
  too_many_endpoints: [409, 'No more endpoints are possible'],
  already_running: [409, 'One is running already'],
  payload_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body must be application/json'],
  qty_over_limit: [422, 'More than one reservation may hold'],
  rate_limited: [429, 'Too many presses in a short time'],
  headers_too_large: [431, 'The headers are too large'],
  internal_error: [500, 'Something is wrong here, not with your request'],
  payment_provider_refused: [502, 'The payment provider refused'],
  payment_provider_unavailable: [503, 'The payment provider cannot be reached'],
  paused: [503, 'The sale is paused'],
  gate_not_loaded: [503, 'The sale is being loaded'],
  gate_unavailable: [503, 'The gate cannot be reached'],
  queue_unavailable: [503, 'The queue cannot be reached'],
  ledger_unavailable: [503, 'The ledger cannot be reached'],
  keys_unavailable: [503, 'The keys of buyers’ tokens cannot be reached'],
  overloaded: [503, 'Too many requests at once'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ProblemCode = keyof typeof problems;

/** Thrown by handlers; `extra` are further members of the document, `headers` further headers of the answer. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(
    code: ProblemCode,
    detail?: string,
    extra: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ) {
    super(detail ?? problems[code][1]);
    this.code = code;
    this.headers = headers;
    this.extra = detail === undefined ? extra : { detail, ...extra };
  }
}

export const PROBLEM_TYPE = 'application/problem+json';

/** The document as text. */
export function problemBody(code: ProblemCode, extra: Record<string, unknown> = {}): string {
  const [status, title] = problems[code];
  return JSON.stringify({ type: `urn:flashgate:problem:${code}`, title, status, code, ...extra });
}

/** The documents that have nothing of their own to say are made once. */
const plain = new Map(Object.keys(problems).map((code) => [code, problemBody(code as ProblemCode)]));

export function sendProblem(reply: FastifyReply, code: ProblemCode, extra?: Record<string, unknown>): FastifyReply {
  const [status] = problems[code];
  count(code);
  // With jitter, so that those who were refused together do not come back together.
  if (status === 503) void reply.header('retry-after', String(1 + Math.floor(Math.random() * 3)));
  if (status === 401 && !reply.hasHeader('www-authenticate'))
    void reply.header('www-authenticate', 'Bearer realm="flashgate"');
  return reply
    .code(status)
    .header('content-type', PROBLEM_TYPE)
    .send(extra === undefined ? plain.get(code) : problemBody(code, extra));
}

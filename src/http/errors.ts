/** From an error to the problem document that a client gets. No stack trace leaves the process. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { Overloaded, TooLate } from '../batcher.ts';
import { StaleToken } from '../domain/outcomes.ts';
import { GateUnavailable } from '../gate/gate.ts';
import { LedgerUnavailable, sqlState } from '../ledger/db.ts';
import { NothingToPay } from '../operations/checkout.ts';
import { EndpointConflict } from '../operations/endpoints.ts';
import { RefundConflict } from '../operations/refund.ts';
import { SaleConflict } from '../operations/sales.ts';
import type { Log } from '../operations/stores.ts';
import { BadWebhook, ProviderRefused, ProviderUnavailable } from '../provider/port.ts';
import { QueueUnavailable } from '../queue/producer.ts';
import { KeysUnavailable } from './keys.ts';
import { requestId, tellRequestId } from './request-id.ts';
import { Problem, PROBLEM_TYPE, problemBody, problems, sendProblem, type ProblemCode } from './problem.ts';

/** Errors of the stores and of the payment provider, each with its name. */
const AWAY: [new (...args: never[]) => Error, ProblemCode][] = [
  [GateUnavailable, 'gate_unavailable'],
  [StaleToken, 'gate_not_loaded'], // somebody else loads it at this moment
  [QueueUnavailable, 'queue_unavailable'],
  [LedgerUnavailable, 'ledger_unavailable'],
  [KeysUnavailable, 'keys_unavailable'],
  [ProviderUnavailable, 'payment_provider_unavailable'],
  [ProviderRefused, 'payment_provider_refused'],
  [Overloaded, 'overloaded'],
  [TooLate, 'overloaded'],
];

/** Errors that carry their name, and words for the caller. */
const NAMED = [SaleConflict, RefundConflict, EndpointConflict, NothingToPay, BadWebhook];
type Named = InstanceType<(typeof NAMED)[number]>;
const isNamed = (error: unknown): error is Named => NAMED.some((kind) => error instanceof kind);

/** Fastify's own errors (its documentation, "Errors"). */
const FASTIFY: Record<string, ProblemCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_HANDLER_TIMEOUT: 'ledger_unavailable', // set where the ledger is what may take too long (`inTime`)
};

/** SQLSTATE class 22: text with a NUL, a time before the first year, … which no schema of ours says as well. */
const DATA_EXCEPTION = '22';

/** The name of what went wrong. */
export function codeOf(error: unknown): ProblemCode {
  if (error instanceof Problem) return error.code;
  return AWAY.find(([kind]) => error instanceof kind)?.[1] ?? 'internal_error';
}

/** Fastify itself is given no logger: with one it makes a child of it, and listens to each reply, for every request. */
export function errorHandler(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    tellRequestId(request, reply);
    if (error instanceof Problem) return sendProblem(reply.headers(error.headers), error.code, error.extra);
    if (isNamed(error)) return sendProblem(reply, error.code, { detail: error.message });
    const about = {
      err: error,
      requestId: requestId(request),
      method: request.method,
      route: request.routeOptions.url,
    };
    const away = AWAY.find(([kind]) => error instanceof kind);
    if (away) {
      log.warn(about, away[1]);
      return sendProblem(reply, away[1], error instanceof ProviderRefused ? { detail: error.message } : undefined);
    }
    const known = FASTIFY[error.code];
    if (known) return sendProblem(reply, known);
    if (error.validation ?? (error.statusCode !== undefined && error.statusCode < 500)) {
      return sendProblem(reply, 'invalid_request', { detail: error.message });
    }
    if (sqlState(error)?.startsWith(DATA_EXCEPTION)) {
      log.warn(about, 'a value that the ledger cannot hold');
      return sendProblem(reply, 'invalid_request', { detail: error.message });
    }
    log.error(about, 'unexpected');
    return sendProblem(reply, 'internal_error');
  };
}

/** What Node's parser refuses before there is a request. */
export function onClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const codes: Record<string, ProblemCode> = {
    HPE_HEADER_OVERFLOW: 'headers_too_large',
    ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  };
  const code = codes[error.code ?? ''] ?? 'invalid_request';
  const body = problemBody(code);
  const status = problems[code][0];
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: ${PROBLEM_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

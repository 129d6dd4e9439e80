/** A payment provider over HTTP: POST /refunds with an idempotency key, GET /refunds/{id}. */
import { z } from 'zod';
import type { DueRefund } from '../ledger/refunds.ts';
import { ProviderUnavailable, type PaymentProvider, type RefundAnswer } from './port.ts';

export type HttpProviderOptions = { baseUrl: string; token: string; timeoutMs: number };

const Answer = z.looseObject({ status: z.enum(['succeeded', 'pending', 'failed']), detail: z.string().optional() });
/** Our own token is wrong, or has just been replaced: nothing is said about the refund. */
const NOT_LET_IN = [401, 403];
/** 409: an earlier call with this key may still be under way there. */
const TRY_AGAIN = [408, 409, 425, 429];
const STATUS = { succeeded: 'SUCCEEDED', pending: 'SUBMITTED', failed: 'FAILED' } as const;

export function httpProvider(options: HttpProviderOptions): PaymentProvider {
  const base = options.baseUrl.replace(/\/+$/, ''); // it may have a path of its own
  const call = async (method: 'GET' | 'POST', path: string, key?: string, body?: object) => {
    const headers = new Headers({ 'content-type': 'application/json' });
    if (options.token !== '') headers.set('authorization', `Bearer ${options.token}`);
    if (key !== undefined) headers.set('idempotency-key', key);
    try {
      const response = await fetch(base + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(options.timeoutMs),
      });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      throw new ProviderUnavailable(`${method} ${path}: ${String(error)}`, { cause: error });
    }
  };
  return {
    async refund({ refundId, paymentId, amount, currency, reason }: DueRefund) {
      const reply = await call('POST', '/refunds', refundId, { refundId, paymentId, amount, currency, reason });
      return read(reply, 'POST /refunds');
    },
    async lookUp({ refundId }: Pick<DueRefund, 'refundId'>) {
      const reply = await call('GET', `/refunds/${encodeURIComponent(refundId)}`);
      if (reply.status === 404) return undefined;
      if (reply.status >= 300) throw unavailable(reply, 'GET /refunds'); // a look refused is not a refund refused
      return read(reply, 'GET /refunds');
    },
  };
}

type Reply = { status: number; text: string };

/** 2xx tells the refund's status; 401, 403, 408, 409, 425, 429 and 5xx are tried again; any other answer is final. */
function read(reply: Reply, what: string): RefundAnswer {
  const { status, text } = reply;
  if (status >= 500 || [...NOT_LET_IN, ...TRY_AGAIN].includes(status)) throw unavailable(reply, what);
  if (status >= 300) return { status: 'FAILED', detail: `${what}: ${status} ${printable(text)}` };
  const answer = Answer.safeParse(parseJson(text));
  if (!answer.success) throw unavailable(reply, `${what}: an answer that cannot be read`);
  return { status: STATUS[answer.data.status], detail: printable(answer.data.detail ?? '') || null };
}

function unavailable({ status, text }: Reply, what: string): ProviderUnavailable {
  return new ProviderUnavailable(`${what}: ${status} ${printable(text)}`);
}

/** As it is kept in the ledger, for a person: Postgres keeps no NUL. */
const printable = (text: string) => text.slice(0, 500).replaceAll('\0', '\uFFFD');

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not an answer: the caller says so, with the text
  }
}

/** A payment provider over HTTP: POST /refunds with an idempotency key, GET /refunds/{id}. */
import { z } from 'zod';
import type { DueRefund } from '../ledger/refunds.ts';
import { ProviderUnavailable, type PaymentProvider, type RefundAnswer } from './port.ts';

export type HttpProviderOptions = { baseUrl: string; token: string; timeoutMs: number };

const Answer = z.looseObject({ status: z.enum(['succeeded', 'pending', 'failed']), detail: z.string().optional() });
const STATUS = { succeeded: 'SUCCEEDED', pending: 'SUBMITTED', failed: 'FAILED' } as const;

export function httpProvider(options: HttpProviderOptions): PaymentProvider {
  const call = async (method: 'GET' | 'POST', path: string, key?: string, body?: object) => {
    const headers = new Headers({ 'content-type': 'application/json' });
    if (options.token !== '') headers.set('authorization', `Bearer ${options.token}`);
    if (key !== undefined) headers.set('idempotency-key', key);
    try {
      const response = await fetch(new URL(path, options.baseUrl), {
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
    async lookUp(refundId: string) {
      const reply = await call('GET', `/refunds/${refundId}`);
      return reply.status === 404 ? undefined : read(reply, 'GET /refunds');
    },
  };
}

/** 2xx tells the refund's status; 408, 425, 429 and 5xx are tried again; any other answer is final. */
function read({ status, text }: { status: number; text: string }, what: string): RefundAnswer {
  if (status >= 500 || [408, 425, 429].includes(status)) throw new ProviderUnavailable(`${what}: ${status} ${text}`);
  if (status >= 300) return { status: 'FAILED', detail: `${what}: ${status} ${text.slice(0, 500)}` };
  const answer = Answer.safeParse(parseJson(text));
  if (!answer.success) throw new ProviderUnavailable(`${what}: ${status} with an answer that cannot be read: ${text}`);
  return { status: STATUS[answer.data.status], detail: answer.data.detail ?? null };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not an answer: the caller says so, with the text
  }
}

/** What an API's reply tells a buyer, checked against CONTRACT's table of answers. Pure: no I/O. */
import { z } from 'zod';
import type { Reply } from './http.ts';

/** A reservation as a buyer was told it. Times in epoch milliseconds, amount in minor units. */
export type Told = {
  reservationId: string;
  userId: string;
  qty: number;
  amount: number;
  currency: string;
  reservedAt: number;
  expiresAt: number;
};

/**
 * `told`: ok or dup. `refused`: a final no. `unknown`: no reply, or one that decides nothing (503, 429); the buyer may hold.
 * `unexpected`: an answer that the API never promised, in words; it decides nothing either.
 */
export type Answer =
  | { is: 'told'; kind: 'ok' | 'dup'; told: Told }
  | { is: 'refused'; kind: string }
  | { is: 'unknown'; kind: string }
  | { is: 'unexpected'; kind: string; words: string };

const instant = z.iso.datetime().transform((text) => Date.parse(text));
const Won = z.object({
  outcome: z.enum(['ok', 'dup']),
  reservationId: z.uuid(),
  saleId: z.string(),
  userId: z.string(),
  qty: z.int(),
  amount: z.int(),
  currency: z.string(),
  reservedAt: instant,
  expiresAt: instant,
});

/** Problems that a well-formed request of a known buyer for a known sale may get, by status. */
const refusals: Record<number, string[]> = {
  409: ['sold_out', 'not_started', 'ended'],
  422: ['qty_over_limit'],
  429: ['rate_limited'],
  503: [
    'paused',
    'gate_not_loaded',
    'gate_unavailable',
    'queue_unavailable',
    'ledger_unavailable',
    'keys_unavailable',
    'overloaded',
  ],
};

export function readAnswer(reply: Reply, asked: { saleId: string; userId: string }): Answer {
  if ('failure' in reply) return { is: 'unknown', kind: reply.failure };
  const { status } = reply;
  const body = parseJson(reply.body);
  const code = typeof body === 'object' && body !== null && 'code' in body ? body.code : undefined;
  if (typeof code === 'string' && refusals[status]?.includes(code)) {
    return { is: status === 503 || status === 429 ? 'unknown' : 'refused', kind: code };
  }
  const unexpected = (what: string): Answer => ({
    is: 'unexpected',
    kind: typeof code === 'string' ? `HTTP ${status} ${code}` : `HTTP ${status}`,
    words: `${asked.userId} got HTTP ${status} ${what}: ${reply.body.slice(0, 200)}`,
  });
  if (status !== 200 && status !== 202) return unexpected('where none is promised');
  const won = Won.safeParse(body);
  if (!won.success) return unexpected(`with a body that is no reservation (${z.prettifyError(won.error)})`);
  const { outcome, saleId, ...told } = won.data;
  if (outcome !== (status === 202 ? 'ok' : 'dup')) return unexpected(`with outcome ${outcome}`);
  if (saleId !== asked.saleId || told.userId !== asked.userId) return unexpected('meant for somebody else');
  return { is: 'told', kind: outcome, told };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON: no code and no reservation can be found in it, which is what is reported
  }
}

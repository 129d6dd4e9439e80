/** What the scripts answer, and what it means. A reply that is none of this is an error and never a yes. */
import { z } from 'zod';
import type { Outcome } from '../domain/outcomes.ts';
import { parseHold, type Hold } from '../domain/reservation.ts';
import { GateUnavailable } from './within.ts';

export const ReserveReply = z.tuple([z.string(), z.literal(['loaded', 'not_loaded', 'loading'])]).rest(z.unknown());
const Presence = z.literal(['not_loaded', 'loading', 'stale']);
export const GaveBack = z.union([
  z.tuple([Presence]),
  z.tuple([z.literal('loaded')], z.literal(['released', 'forfeited', 'not_held'])),
]);
export const Adopted = z.union([
  z.tuple([Presence]),
  z.tuple([z.literal('loaded')], z.literal(['adopted', 'held', 'other'])),
]);
export const Unqueued = z.union([z.tuple([Presence]), z.tuple([z.literal('loaded')], z.string())]);
export const Configured = z.union([
  z.tuple([z.enum(['not_loaded', 'loading', 'stale', 'applied', 'currency_fixed'])]),
  z.tuple([z.enum(['older', 'total_too_low']), z.number()]),
]);
export const Settled = z.union([
  z.tuple([z.enum([...Presence.values, 'changed'])]),
  z.tuple([z.literal('settled'), z.number()]),
]);

/** A reply with fewer or more answers is to another question. @throws {GateUnavailable} */
export function oneEach<T>(asked: unknown[], answers: T[]): T[] {
  if (answers.length === asked.length) return answers;
  throw new GateUnavailable(`asked for ${asked.length}, got ${answers.length} answers`);
}

/** @throws {GateUnavailable} when it is no hold: something else has written to the gate */
export function readHold(saleId: string, userId: string, text: string): Hold {
  try {
    return parseHold(saleId, userId, text);
  } catch (error) {
    throw new GateUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** One buyer's answer of reserve.lua. @throws {GateUnavailable} also for another reservation than was asked for */
export function parseAnswer(
  saleId: string,
  { userId, reservationId }: Pick<Hold, 'userId' | 'reservationId'>,
  answer: string,
): Outcome {
  const bar = answer.indexOf('|');
  const word = bar < 0 ? answer : answer.slice(0, bar);
  const hold = () => readHold(saleId, userId, answer.slice(bar + 1));
  switch (word) {
    case reservationId:
      return { outcome: 'ok', hold: readHold(saleId, userId, answer) };
    case 'dup':
      return { outcome: 'dup', hold: hold(), queued: true };
    case 'dup_unqueued':
      return { outcome: 'dup', hold: hold(), queued: false };
    case 'paused':
    case 'not_started':
    case 'ended':
    case 'qty_over_limit':
    case 'sold_out':
      return { outcome: word };
    default:
      throw new GateUnavailable(`the gate of sale ${saleId} answered ${answer}`);
  }
}

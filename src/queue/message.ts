/** The queue message, version 1: a hold. Anything else is not ours and ends in the dead-letter queue. */
import { z } from 'zod';
import { Hold } from '../domain/reservation.ts';

const MessageV1 = Hold.extend({ v: z.literal(1) }).refine(({ expiresAt, reservedAt }) => expiresAt > reservedAt);

export function formatMessage(hold: Hold): string {
  return JSON.stringify({ v: 1, ...hold });
}

/** @throws {Error} that says what is wrong with it */
export function parseMessage(body: string | undefined): Hold {
  const { v: _, ...hold } = MessageV1.parse(JSON.parse(body ?? ''));
  return hold;
}

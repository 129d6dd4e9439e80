/**
 * The sample shop's session: who this browser is, and which reservation it was told of, in a cookie that the shop signs
 * and no script can read. A real shop has its own, with customers who have logged in; this one makes everybody a guest.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

/** `holds`: sale → the reservation that this browser was told of last. */
const Session = z.object({ buyer: z.string(), holds: z.record(z.string(), z.uuid()) });
export type Session = z.infer<typeof Session>;

const COOKIE = 'shop';
const MONTH_SECONDS = 30 * 86_400;
/** A cookie has room for 4 kB; who goes to more sales loses sight of the oldest. */
const MOST_HOLDS = 20;

/** @returns undefined for a browser that has none, or one that this shop has not signed */
export function sessionOf(request: FastifyRequest): Session | undefined {
  const signed = request.cookies[COOKIE];
  const { valid, value } = signed === undefined ? { valid: false, value: null } : request.unsignCookie(signed);
  return valid && value !== null ? Session.parse(JSON.parse(value)) : undefined;
}

export const newSession = (): Session => ({ buyer: `guest-${randomUUID()}`, holds: {} });

export function withHold({ buyer, holds }: Session, saleId: string, reservationId: string): Session {
  const { [saleId]: _, ...others } = holds;
  const latest = Object.entries(others).slice(1 - MOST_HOLDS);
  return { buyer, holds: { ...Object.fromEntries(latest), [saleId]: reservationId } };
}

export function keepSession(reply: FastifyReply, session: Session): void {
  void reply.setCookie(COOKIE, JSON.stringify(session), {
    signed: true,
    httpOnly: true,
    // A link from elsewhere shows the buyer their hold; what changes something is checked besides (../origin.ts).
    sameSite: 'lax',
    secure: 'auto',
    path: '/shop',
    maxAge: MONTH_SECONDS,
  });
}

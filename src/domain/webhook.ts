/**
 * Webhooks out to the shop: which events there are, what an endpoint is, and when a delivery is tried again.
 * Pure: no I/O. The protocol is that of Standard Webhooks (https://www.standardwebhooks.com).
 */
import { z } from 'zod';

/** `reservation.` and the status that the order came into, in small letters. */
export const WebhookEventType = z.enum([
  'reservation.paid',
  'reservation.expired',
  'reservation.cancelled',
  'reservation.rejected',
  'reservation.refunded',
]);
export type WebhookEventType = z.infer<typeof WebhookEventType>;

export const EndpointId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

/** The whole settings of an endpoint. */
export const EndpointSettings = z.strictObject({
  url: z.string().min(1).max(2000),
  events: z.array(WebhookEventType).min(1).max(WebhookEventType.options.length),
  active: z.boolean().default(true),
});
export type EndpointSettings = z.infer<typeof EndpointSettings>;

export const DeliveryStatus = z.enum(['PENDING', 'DELIVERED', 'FAILED']);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** Each endpoint has deliveries under way of its own, so this bounds those of a keeper as a whole. */
export const MAX_ENDPOINTS = 20;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pause before each attempt, as the specification of Standard Webhooks suggests: a little more than three days in all. */
export const SCHEDULE_MS = [
  ...[0, 5 * SECOND, 5 * MINUTE, 30 * MINUTE],
  ...[2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR],
];
/** Ten per cent to either side, so that what failed together does not come back together. */
const JITTER = 0.1;
const LONGEST_RETRY_AFTER_MS = 24 * HOUR;

/**
 * @param attempts how many have failed
 * @param chance from 0 to 1
 * @returns the pause before the next one in milliseconds; undefined when that was the last
 */
export function pauseAfter(attempts: number, chance: number): number | undefined {
  const pause = SCHEDULE_MS[attempts];
  return pause === undefined ? undefined : Math.round(pause * (1 - JITTER + 2 * JITTER * chance));
}

/**
 * A `Retry-After` (RFC 9110, 10.2.3): seconds, or a date.
 * @param now epoch milliseconds
 * @returns milliseconds from now, a day at most; undefined when it says nothing
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * SECOND : Date.parse(header) - now;
  return Number.isNaN(ms) || ms <= 0 ? undefined : Math.min(ms, LONGEST_RETRY_AFTER_MS);
}

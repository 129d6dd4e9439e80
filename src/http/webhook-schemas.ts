/** Webhooks out to the shop in zod: their admin interface, and what is sent. See schemas.ts. */
import { z } from 'zod';
import { DeliveryStatus, EndpointId, WebhookEventType } from '../domain/webhook.ts';
import { AdminReservation } from './schemas.ts';

const Time = z.iso.datetime();

export const EndpointParams = z.strictObject({ endpointId: EndpointId });
export const DeliveryParams = z.strictObject({ endpointId: EndpointId, eventId: z.string().min(1).max(128) });

const endpoint = {
  endpointId: EndpointId,
  url: z.string(),
  events: z.array(WebhookEventType),
  active: z.boolean(),
  createdAt: Time,
  /** When it answered 410 Gone, which made it inactive. */
  goneAt: Time.optional(),
  /** It asked by Retry-After to be left alone until then. */
  holdUntil: Time.optional(),
  /** Until then events carry a signature of the secret that was rotated out, too. */
  oldSecretUntil: Time.optional(),
};
export const EndpointShown = z.object(endpoint).meta({ id: 'WebhookEndpoint' });
export const EndpointWithSecret = z
  .object({ ...endpoint, secret: z.string() })
  .meta({ id: 'WebhookEndpointWithSecret' });
export const Endpoints = z.object({ endpoints: z.array(EndpointShown) }).meta({ id: 'WebhookEndpoints' });

export const DeliveriesQuery = z.strictObject({
  status: DeliveryStatus.optional(),
  after: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
  limit: z
    .string()
    .regex(/^([1-9]\d{0,2}|1000)$/)
    .default('100'),
});
export const DeliveryShown = z
  .object({
    eventId: z.string(),
    type: WebhookEventType,
    status: DeliveryStatus,
    attempts: z.int(),
    /** Of the last attempt: its HTTP status, the beginning of the answer, why it counts as failed. */
    lastStatus: z.int().optional(),
    lastAnswer: z.string().optional(),
    lastError: z.string().optional(),
    nextAttemptAt: Time.optional(),
    createdAt: Time,
    updatedAt: Time,
  })
  .meta({ id: 'WebhookDelivery' });
/** `next` is the cursor of the following page, of older events; null when this page is empty. */
export const Deliveries = z
  .object({ deliveries: z.array(DeliveryShown), next: z.string().nullable() })
  .meta({ id: 'WebhookDeliveries' });

/** What the trigger of migrations/0005_webhooks.sql writes; a test holds what is really sent to it. */
export const ReservationEvent = z
  .object({ type: WebhookEventType, timestamp: Time, data: AdminReservation.omit({ refund: true }) })
  .meta({ id: 'ReservationEvent' });

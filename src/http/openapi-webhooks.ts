/**
 * Events for the document, each type as one of OpenAPI's `webhooks`: what a payment provider sends, with the headers and
 * the body of the route that takes them all, and what the shop is sent. The protocol of both is Standard Webhooks,
 * https://www.standardwebhooks.com.
 */
import { PaymentEventType } from '../domain/payment.ts';
import { WebhookEventType } from '../domain/webhook.ts';
import { paymentEvent, reservationEvent } from './examples.ts';

const MEANS: Record<PaymentEventType, [operationId: string, summary: string]> = {
  'payment.succeeded': ['paymentSucceeded', 'Money was captured: the reservation is paid, or the money is owed back'],
  'payment.failed': ['paymentFailed', 'A card was declined: recorded, the hold stays'],
  'payment.canceled': ['paymentCanceled', 'The provider gave up: the hold is freed'],
  'refund.succeeded': ['refundSucceeded', 'The money is given back'],
  'refund.failed': ['refundFailed', 'The money could not be given back: a person is needed'],
};

const EVENT = { $ref: '#/components/schemas/PaymentEvent' };

const HEADERS = [
  {
    name: 'webhook-id',
    in: 'header',
    required: true,
    description: 'The event’s id: the same event again changes nothing',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
    example: 'evt-1',
  },
  {
    name: 'webhook-timestamp',
    in: 'header',
    required: true,
    description: 'Seconds since 1970, at most five minutes off',
    schema: { type: 'string', pattern: '^\\d+$' },
    example: '1796047200',
  },
];

/** How an event is signed: as Standard Webhooks say, or as the provider does. */
export type Signed = 'standard' | 'own';

/** Parameters and body of a route for events; the header with the signature is its security scheme. */
export function webhookParameters(signed: Signed): object {
  if (signed === 'own') {
    const schema = { type: 'object', description: 'As the provider documents it' };
    return { requestBody: { required: true, content: { 'application/json': { schema } } } };
  }
  return {
    parameters: HEADERS,
    requestBody: { required: true, content: { 'application/json': { schema: EVENT, example: paymentEvent() } } },
  };
}

export function paymentWebhooks(): Record<string, object> {
  const entries = PaymentEventType.options.map((type): [string, object] => {
    const [operationId, summary] = MEANS[type];
    const schema = { allOf: [EVENT, { type: 'object', properties: { type: { const: type } } }] };
    const post = {
      ...{ operationId, summary, tags: ['payment provider'], parameters: HEADERS, security: [{ signature: [] }] },
      description: 'Sent to POST /webhooks/payments, whose answers these are. Anything but 2xx: send it again.',
      requestBody: { required: true, content: { 'application/json': { schema, example: paymentEvent(type) } } },
      responses: {
        200: {
          description: 'Durable; `outcome` says what came of it',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Received' } } },
        },
      },
    };
    return [type, { post }];
  });
  return Object.fromEntries(entries);
}

const TOLD: Record<WebhookEventType, [operationId: string, summary: string]> = {
  'reservation.paid': ['reservationPaid', 'Paid in time: ship it'],
  'reservation.expired': ['reservationExpired', 'Not paid in time; its units are for sale again'],
  'reservation.cancelled': ['reservationCancelled', 'Given up by the buyer, or by the payment provider'],
  'reservation.rejected': ['reservationRejected', 'A winner for whom there was no unit: tell them'],
  'reservation.refunded': ['reservationRefunded', 'Was paid, and its money is on its way back'],
};

const SENT_HEADERS = [
  {
    ...{ name: 'webhook-id', in: 'header', required: true, schema: { type: 'string' } },
    description: 'The event’s id, the same for each time that it is sent: act once on it',
    example: '541460b2-8259-4f70-9018-0676e172f86a_paid',
  },
  {
    ...{ name: 'webhook-timestamp', in: 'header', required: true, schema: { type: 'string', pattern: '^\\d+$' } },
    description: 'When this attempt was made, in seconds since 1970',
    example: '1796047200',
  },
  {
    ...{ name: 'webhook-signature', in: 'header', required: true },
    description: 'By the endpoint’s secret, `v1,` and HMAC-SHA256 in base64; while it is rotated one for each secret',
    schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/=]+( v1,[A-Za-z0-9+/=]+)*$' },
    example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  },
];

const ANSWERS = {
  '2XX': { description: 'Delivered' },
  410: { description: 'Nothing more is sent to this endpoint until it is made active again' },
  429: { description: 'Nothing is sent to this endpoint until `Retry-After`, then this event again' },
  503: { description: 'As 429' },
};

/** What the shop's endpoints are sent, see docs/webhooks.md. */
export function reservationWebhooks(): Record<string, object> {
  const entries = WebhookEventType.options.map((type): [string, object] => {
    const [operationId, summary] = TOLD[type];
    const event = { $ref: '#/components/schemas/ReservationEvent' };
    const schema = { allOf: [event, { type: 'object', properties: { type: { const: type } } }] };
    const post = {
      ...{ operationId, summary, tags: ['webhooks'], parameters: SENT_HEADERS, responses: ANSWERS },
      description: 'Sent to the endpoints that want it, at least once and in no order; after any other answer again.',
      requestBody: { required: true, content: { 'application/json': { schema, example: reservationEvent(type) } } },
    };
    return [type, { post }];
  });
  return Object.fromEntries(entries);
}

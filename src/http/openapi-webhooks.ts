/**
 * What a payment provider sends, for the document: each type of event as one of OpenAPI's `webhooks`, and the headers and
 * the body of the route that takes them all. The protocol is Standard Webhooks, https://www.standardwebhooks.com.
 */
import { PaymentEventType } from '../domain/payment.ts';
import { paymentEvent } from './examples.ts';

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

export function webhooks(): Record<string, object> {
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

/** POST /webhooks/payments: Standard Webhooks; and the provider's own events, if it has such. 2xx only once the event is durable; then a redelivery changes nothing. */
import type { FastifyInstance, FastifySchema } from 'fastify';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import type { z } from 'zod';
import { crashPoint } from '../crash.ts';
import { AnyEvent, PaymentEvent, PaymentEventType, type KnownEvent } from '../domain/payment.ts';
import { applyEvent } from '../ledger/payments.ts';
import { asLabel, paymentEvents } from '../meter.ts';
import { finish } from '../operations/finish.ts';
import type { Api } from './app.ts';
import { Problem } from './problem.ts';
import { requestId } from './request-id.ts';
import { jsonSchema, Received } from './schemas.ts';

type Headers = Record<string, string | string[] | undefined>;
/** @returns undefined for an event that means nothing to us */
type Read = (body: Buffer, headers: Headers) => KnownEvent | undefined | Promise<KnownEvent | undefined>;

export function webhookRoutes(app: FastifyInstance, api: Api): void {
  const { config, provider } = api;
  const webhooks = config.WEBHOOK_SECRET.map((secret) => new Webhook(secret));
  const standard: Read = (body, headers) => parseEvent(verify(webhooks, body, headers), String(headers['webhook-id']));
  if (webhooks.length > 0) {
    eventRoute(app, api, '/webhooks/payments', STANDARD, standard);
  }
  const own = provider?.webhooks;
  if (own) {
    const read: Read = (body, headers) => own.read(body, headers);
    eventRoute(app, api, own.path, OWN, read);
  }
}

const STANDARD: FastifySchema = {
  operationId: 'receivePaymentEvent',
  summary: 'A payment event, signed as Standard Webhooks say',
  security: [{ signature: [] }],
  'x-signed': 'standard',
  'x-refuses': ['malformed_event', 'ledger_unavailable'],
};
const OWN: FastifySchema = {
  operationId: 'receiveProviderEvent',
  summary: 'A payment event in the provider’s own form, signed as the provider does',
  security: [{ provider: [] }],
  'x-signed': 'own',
  'x-refuses': ['malformed_event', 'wrong_mode', 'ledger_unavailable'],
};

function eventRoute(
  app: FastifyInstance,
  { stores, inTime }: Api,
  path: string,
  documented: FastifySchema,
  read: Read,
): void {
  // The signature covers the bytes as they came, so in this scope nothing parses them before it is checked.
  void app.register((scope, _, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) => {
      parsed(null, body);
    });
    scope.post<{ Body: Buffer | undefined }>(
      path,
      {
        ...inTime,
        schema: {
          tags: ['payment provider'],
          ...documented,
          'x-told': { 200: { description: 'Durable; sent again, it changes nothing' } },
          response: { 200: jsonSchema(Received) },
        },
      },
      async (request) => {
        const event = await read(request.body ?? Buffer.alloc(0), request.headers);
        if (!event) {
          paymentEvents.inc({ type: 'other', outcome: 'unknown_type' });
          return { state: 'ignored', outcome: 'unknown_type' };
        }
        const { state, outcome, ended } = await applyEvent(stores.pool, event);
        crashPoint('event_applied');
        paymentEvents.inc({ type: event.type, outcome: asLabel(outcome) });
        const { eventId, type, reservationId } = event;
        // Money that goes back is worth a line; money that pays is the ordinary walk.
        const level = outcome.startsWith('refund_owed') ? 'info' : 'debug';
        stores.log[level]({ requestId: requestId(request), eventId, type, reservationId, outcome }, 'payment event');
        await finish(stores, ended);
        return { state, outcome };
      },
    );
    done();
  });
}

/** @returns the body's text, once one of the secrets has signed it */
function verify(webhooks: Webhook[], body: Buffer, headers: Headers): string {
  const id = headers['webhook-id'];
  if (typeof id !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(id)) throw new Problem('bad_signature');
  const text = body.toString('utf8');
  let late = false;
  for (const webhook of webhooks) {
    try {
      webhook.verify(text, headers as Record<string, string>, { jsonParse: false });
      return text;
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      late ||= /timestamp too (old|new)/i.test(error.message);
    }
  }
  throw new Problem(late ? 'timestamp_out_of_range' : 'bad_signature');
}

/** @returns undefined for a type that means nothing to us */
function parseEvent(text: string, eventId: string): KnownEvent | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Problem('malformed_event', `the body is not JSON: ${String(error)}`);
  }
  const any = AnyEvent.safeParse(json);
  if (!any.success) throw new Problem('malformed_event', any.error.issues.map(describe).join('; '));
  if (!PaymentEventType.safeParse(any.data.type).success) return undefined;
  const event = PaymentEvent.safeParse(withReservationId(any.data));
  if (!event.success) throw new Problem('malformed_event', event.error.issues.map(describe).join('; '));
  const { type, data } = event.data;
  const { paymentId, reservationId, amount, currency } = data;
  return { eventId, type, paymentId, reservationId, amount, currency };
}

/**
 * What the provider has in place of a reservation's id, whatever it is, as text that the ledger can hold: money came
 * with it, which is stored and given back rather than stranded by a refusal.
 */
function withReservationId(event: z.infer<typeof AnyEvent>): unknown {
  const { data } = event;
  if (typeof data !== 'object' || data === null) return event;
  const { reservationId: given = null } = data as { reservationId?: unknown };
  const text = typeof given === 'string' && given !== '' ? given : JSON.stringify(given);
  return { ...event, data: { ...data, reservationId: text.replaceAll('\0', '\ufffd').slice(0, 255) } };
}

const describe = ({ path, message }: { path: PropertyKey[]; message: string }) => `${path.join('.')}: ${message}`;

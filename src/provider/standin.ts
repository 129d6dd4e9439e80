/**
 * A stand-in payment provider for demo, tests and development: a real HTTP server that captures payments, reports them
 * by signed webhooks, makes refunds under idempotency keys, and misbehaves when it is told to. It forgets all on exit.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify, { type FastifyInstance } from 'fastify';
import { z } from 'zod';
import { Book, Refused, type Payment, type Refund } from './book.ts';
import { WebhookSender, type PaymentEvent, type SenderOptions } from './webhooks.ts';

export type ProviderOptions = {
  host?: string;
  /** 0 (the default) takes a free one. */
  port?: number;
  webhookUrl: string;
  /** One or more `whsec_` secrets, space-separated. */
  webhookSecret: string;
  /** When set, callers need it: `Authorization: Bearer …`. */
  token?: string;
  logLevel?: string;
  /** Refunds are answered `pending` and reported by webhook this many milliseconds later. Unset: done at once. */
  pendingRefundsMs?: number;
  /** How events are delivered: {@link SenderOptions}. */
  delivery?: Partial<Pick<SenderOptions, 'concurrency' | 'attempts' | 'backoffMs' | 'timeoutMs'>>;
};

export type Provider = { url: string; close(): Promise<void> };

const Id = z.string().min(1).max(255);
const Amount = z.int().min(0);
const Currency = z.string().regex(/^[A-Z]{3}$/);

const PaymentRequest = z.strictObject({
  reservationId: Id,
  amount: Amount,
  currency: Currency,
  paymentId: Id.optional(),
  outcome: z.enum(['succeeded', 'failed', 'canceled']).default('succeeded'),
  delayMs: z.int().min(0).max(3_600_000).default(0),
  repeat: z.int().min(1).max(100).default(1),
});
const RefundBody = z.strictObject({
  refundId: Id,
  paymentId: Id,
  amount: z.int().min(1),
  currency: Currency,
  reason: z.string().max(255).default(''),
});
const Faults = z.strictObject({
  refunds: z
    .strictObject({
      /** The next `times` refund calls get this status instead of an answer. */
      status: z.int().min(400).max(599).optional(),
      /** The next `times` refund calls are answered this much later, in milliseconds. */
      hang: z.int().min(0).max(600_000).default(0),
      times: z.int().min(1).default(1),
      /** Make the refund before failing: the caller's "it failed" is wrong. */
      made: z.boolean().default(false),
    })
    .optional(),
  /** As the option of the same name; null: refunds are done at once. */
  pendingRefundsMs: z.int().min(0).max(3_600_000).nullable().optional(),
  webhooks: z.strictObject({ dropFirst: z.int().min(0) }).optional(),
});

/**
 * Starts the stand-in. Routes: `POST /payments`, `GET /payments`, `GET /payments/:id`, `POST /payments/:id/events`
 * (reports it anew, under a new event id), `POST /refunds`, `GET /refunds/:id`, `POST /faults`.
 * @throws {Error} when the port is taken or the secret is not usable
 */
export async function startProvider(options: ProviderOptions): Promise<Provider> {
  const app = Fastify({ logger: { level: options.logLevel ?? 'warn', name: 'provider' }, forceCloseConnections: true });
  const sender = new WebhookSender(
    {
      url: options.webhookUrl,
      secret: options.webhookSecret,
      concurrency: 16,
      attempts: 12,
      backoffMs: 100,
      timeoutMs: 10_000,
      ...options.delivery,
    },
    app.log,
  );
  answerInProblems(app);
  if (options.token) requireToken(app, options.token);
  const standin = new StandIn(sender, options.pendingRefundsMs);
  paymentRoutes(app, standin);
  refundRoutes(app, standin);
  app.addHook('onClose', () => standin.close());
  const url = await app.listen({ host: options.host ?? '127.0.0.1', port: options.port ?? 0 });
  return { url, close: () => app.close() };
}

/** The book, the sender, and the faults that are switched on. */
class StandIn {
  book = new Book();
  #sender: WebhookSender;
  #pendingMs: number | undefined;
  #timers = new Set<NodeJS.Timeout>();
  #fault: NonNullable<z.infer<typeof Faults>['refunds']> | undefined;

  constructor(sender: WebhookSender, pendingMs: number | undefined) {
    this.#sender = sender;
    this.#pendingMs = pendingMs;
  }

  /** Replaces all fault switches: what is left out is switched off, except for `pendingRefundsMs`, which stays. */
  setFaults(faults: z.infer<typeof Faults>): void {
    this.#fault = faults.refunds;
    if (faults.pendingRefundsMs !== undefined) this.#pendingMs = faults.pendingRefundsMs ?? undefined;
    this.#sender.dropNext(faults.webhooks?.dropFirst ?? 0);
  }

  takeRefundFault() {
    const fault = this.#fault;
    if (fault && (fault.times -= 1) === 0) this.#fault = undefined;
    return fault;
  }

  report(payment: Payment, type: PaymentEvent['type'], money = payment.amount, delayMs = 0, copies = 1): string {
    const eventId = `evt_${randomUUID()}`;
    const { paymentId, reservationId, currency } = payment;
    const data = { paymentId, reservationId, amount: money, currency };
    this.#sender.send(eventId, { type, timestamp: new Date().toISOString(), data }, delayMs, copies, () => {
      payment.deliveredAt ??= new Date().toISOString();
    });
    return eventId;
  }

  refund(key: string, body: z.infer<typeof RefundBody>): { refund: Refund; isNew: boolean } {
    const pendingMs = this.#pendingMs;
    const made = this.book.refund(key, body, pendingMs === undefined ? 'succeeded' : 'pending');
    if (made.isNew && pendingMs !== undefined) {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.book.completeRefund(body.refundId);
        this.report(this.book.payment(body.paymentId), 'refund.succeeded', body.amount);
      }, pendingMs);
      this.#timers.add(timer);
    }
    return made;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#sender.close();
  }
}

function paymentRoutes(app: FastifyInstance, standin: StandIn): void {
  const { book } = standin;
  app.post('/payments', (request, reply) => {
    const { outcome, delayMs, repeat, ...asked } = PaymentRequest.parse(request.body);
    const paymentId = asked.paymentId ?? `pay_${randomUUID()}`;
    const { payment, isNew } = book.pay({ ...asked, paymentId, outcome });
    if (isNew) standin.report(payment, `payment.${outcome}`, payment.amount, delayMs, repeat);
    return reply.code(isNew ? 201 : 200).send(payment);
  });
  app.post<{ Params: { id: string } }>('/payments/:id/events', (request, reply) => {
    const payment = book.payment(request.params.id);
    return reply.code(202).send({ eventId: standin.report(payment, `payment.${payment.status}`) });
  });
  app.get('/payments', () => ({ payments: book.payments() }));
  app.get<{ Params: { id: string } }>('/payments/:id', (request) => book.payment(request.params.id));
}

function refundRoutes(app: FastifyInstance, standin: StandIn): void {
  app.post('/refunds', async (request, reply) => {
    const key = request.headers['idempotency-key'];
    if (typeof key !== 'string' || key === '') {
      throw new Refused(400, 'idempotency_key_missing', 'a refund needs the header Idempotency-Key');
    }
    const body = RefundBody.parse(request.body);
    const fault = standin.takeRefundFault();
    if (fault?.status !== undefined && !fault.made) throw asTold(fault.status);
    const { refund, isNew } = standin.refund(key, body);
    if (fault && fault.hang > 0) await sleep(fault.hang, undefined, { ref: false });
    if (fault?.status !== undefined) throw asTold(fault.status);
    return reply.code(isNew ? 201 : 200).send(refund);
  });
  app.get<{ Params: { id: string } }>('/refunds/:id', (request) => standin.book.findRefund(request.params.id));
  app.post('/faults', (request, reply) => {
    standin.setFaults(Faults.parse(request.body));
    return reply.code(204).send();
  });
}

const asTold = (status: number) => new Refused(status, 'fault', 'failing on purpose, as POST /faults asked');

function requireToken(app: FastifyInstance, token: string): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.headers.authorization === `Bearer ${token}`) return;
    reply.header('www-authenticate', 'Bearer');
    throw new Refused(401, 'unauthorized', 'the bearer token is missing or wrong');
  });
}

/** Every error as RFC 9457 `application/problem+json` with a `code`. */
function answerInProblems(app: FastifyInstance): void {
  app.setNotFoundHandler((request) => {
    throw new Refused(404, 'not_found', `there is no ${request.method} ${request.url}`);
  });
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const invalid = error instanceof z.ZodError;
    const status = error instanceof Refused ? error.status : invalid ? 400 : (error.statusCode ?? 500);
    const code = error instanceof Refused ? error.code : status < 500 ? 'invalid_request' : 'internal_error';
    if (code === 'internal_error') request.log.error({ err: error }, 'the provider failed');
    const detail = invalid ? z.prettifyError(error) : error.message;
    const problem = { type: `urn:flashgate:provider:${code}`, title: code.replaceAll('_', ' '), status, code, detail };
    return reply.code(status).type('application/problem+json').send(problem);
  });
}

/** The stand-in payment provider: what its callers may rely on, over real HTTP. */
import Fastify from 'fastify';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import { startProvider, type ProviderOptions } from '../../src/provider/standin.ts';

const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const nextSecret = `whsec_${Buffer.alloc(24, 2).toString('base64')}`;
const bill = { reservationId: 'r-1', amount: 1999, currency: 'EUR' };

type Delivery = { id: string; headers: Record<string, string>; body: string };
type Event = { type: string; data: Record<string, unknown> };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A receiver of webhooks. It answers with the statuses in turn, then with 204. */
async function startReceiver(statuses: number[] = []) {
  const app = Fastify({ forceCloseConnections: true });
  const deliveries: Delivery[] = [];
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.post('/hook', (request, reply) => {
    const headers = request.headers as Record<string, string>;
    deliveries.push({ id: headers['webhook-id'] ?? '', headers, body: String(request.body) });
    return reply.code(statuses.shift() ?? 204).send();
  });
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/hook`;
  closing.push(() => app.close());
  return { url, deliveries, events: () => deliveries.map(({ body }) => JSON.parse(body) as Event) };
}

async function start(options: Partial<ProviderOptions> & { statuses?: number[] } = {}) {
  const { statuses, ...given } = options;
  const receiver = await startReceiver(statuses);
  const delivery = { backoffMs: 10, ...given.delivery };
  const addressed = { webhookUrl: receiver.url, webhookSecret: secret, logLevel: 'silent' };
  const provider = await startProvider({ ...addressed, ...given, delivery });
  closing.unshift(() => provider.close());
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await fetch(provider.url + path, {
      method,
      headers: { ...json, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    const parsed = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
    return { status: answer.status, headers: answer.headers, body: parsed };
  };
  const refund = (key: string, changes: Record<string, unknown> = {}) =>
    call(
      'POST',
      '/refunds',
      { refundId: key, paymentId: 'p-1', amount: 1999, currency: 'EUR', reason: 'expired', ...changes },
      { 'idempotency-key': key },
    );
  return { ...receiver, call, refund };
}

describe('payments', () => {
  it('captures and reports by an event whose signature holds', async () => {
    const { call, deliveries, events } = await start({ webhookSecret: `${secret} ${nextSecret}` });
    const { status, body } = await call('POST', '/payments', { ...bill, paymentId: 'p-1' });
    expect(status).toBe(201);
    expect(body).toMatchObject({ ...bill, paymentId: 'p-1', status: 'succeeded', captured: 1999, refunded: 0 });

    await expect.poll(() => deliveries.length).toBe(1);
    const [delivery] = deliveries as [Delivery];
    for (const either of [secret, nextSecret]) {
      expect(new Webhook(either).verify(delivery.body, delivery.headers)).toEqual(JSON.parse(delivery.body));
    }
    expect(() => new Webhook(secret).verify(`${delivery.body} `, delivery.headers)).toThrow();
    expect(events()[0]).toEqual({
      type: 'payment.succeeded',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      data: { paymentId: 'p-1', ...bill },
    });
    await expect.poll(async () => (await call('GET', '/payments/p-1')).body.deliveredAt).toMatch(/Z$/);
  });

  it('tries again until it is accepted, under the same event id', async () => {
    const { call, deliveries } = await start({ statuses: [500, 302, 429] });
    await call('POST', '/payments', bill);
    await expect.poll(() => deliveries.length).toBe(4);
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(1);
    for (const { body, headers } of deliveries) new Webhook(secret).verify(body, headers);
  });

  it('tries again when nobody listens, and gives up after the attempts it has', async () => {
    const { call, deliveries } = await start();
    await call('POST', '/faults', { webhooks: { dropFirst: 2 } });
    await call('POST', '/payments', bill);
    await expect.poll(() => deliveries.length).toBe(1);

    const few = await start({ statuses: [500, 500, 500], delivery: { attempts: 2 } });
    await few.call('POST', '/payments', { ...bill, paymentId: 'p-1' });
    await expect.poll(() => few.deliveries.length).toBe(2);
    await new Promise((resolve) => setTimeout(resolve, 100)); // five times the pause after the second try
    expect(few.deliveries.length).toBe(2);
    expect((await few.call('GET', '/payments/p-1')).body.deliveredAt).toBeNull();
  });

  it('delivers one event many times when asked to, and a payment anew under another event id', async () => {
    const { call, deliveries } = await start();
    await call('POST', '/payments', { ...bill, paymentId: 'p-1', repeat: 5 });
    await expect.poll(() => deliveries.length).toBe(5);
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(1);

    expect((await call('POST', '/payments/p-1/events')).status).toBe(202);
    await expect.poll(() => deliveries.length).toBe(6);
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(2);
  });

  it('makes a payment once, and lets a failed one succeed later', async () => {
    const { call, events } = await start();
    const payment = { ...bill, paymentId: 'p-1' };
    expect((await call('POST', '/payments', { ...payment, outcome: 'failed' })).body.captured).toBe(0);
    expect((await call('POST', '/payments', payment)).status).toBe(201);
    expect((await call('POST', '/payments', payment)).status).toBe(200);
    expect((await call('POST', '/payments', { ...payment, amount: 1 })).status).toBe(409);
    await expect
      .poll(() =>
        events()
          .map(({ type }) => type)
          .toSorted(),
      )
      .toEqual(['payment.failed', 'payment.succeeded']);
    expect((await call('GET', '/payments')).body.payments).toMatchObject([{ paymentId: 'p-1', captured: 1999 }]);
  });
});

describe('refunds', () => {
  it('makes one refund per key, however often it is asked', async () => {
    const { call, refund } = await start();
    await call('POST', '/payments', { ...bill, paymentId: 'p-1' });
    const answers = await Promise.all(Array.from({ length: 10 }, () => refund('f-1')));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array<number>(9).fill(200), 201]);
    const done = { refundId: 'f-1', paymentId: 'p-1', amount: 1999, currency: 'EUR', status: 'succeeded' };
    expect(answers.map(({ body }) => body)).toEqual(answers.map(() => done));
    expect((await call('GET', '/payments/p-1')).body.refunded).toBe(1999);
    expect((await call('GET', '/refunds/f-1')).body).toEqual(done);
  });

  it('refuses what it cannot or must not do', async () => {
    const { call, refund } = await start();
    await call('POST', '/payments', { ...bill, paymentId: 'p-1' });
    const code = async (answer: ReturnType<typeof refund>) => {
      const { status, headers, body } = await answer;
      expect(headers.get('content-type')).toContain('application/problem+json');
      expect(body).toMatchObject({ status, type: `urn:flashgate:provider:${String(body.code)}` });
      return `${status} ${String(body.code)}`;
    };
    expect(await code(refund('f-1', { amount: 2000 }))).toBe('422 refund_too_large');
    expect(await code(refund('f-1', { currency: 'USD' }))).toBe('422 refund_too_large');
    expect(await code(refund('f-1', { paymentId: 'p-2' }))).toBe('404 payment_not_found');
    expect(await code(refund('f-1', { amount: '1' }))).toBe('400 invalid_request');
    expect(await code(refund(''))).toBe('400 idempotency_key_missing');
    expect(await code(call('GET', '/refunds/f-1'))).toBe('404 refund_not_found');
    expect(await code(call('GET', '/nothing'))).toBe('404 not_found');

    expect((await refund('f-1', { amount: 1000 })).status).toBe(201);
    expect(await code(refund('f-1', { amount: 999 }))).toBe('409 idempotency_key_reused');
    expect(await code(refund('f-2', { refundId: 'f-1', amount: 1 }))).toBe('409 refund_exists');
    expect(await code(refund('f-2', { amount: 1000 }))).toBe('422 refund_too_large');
    expect((await refund('f-2', { amount: 999 })).status).toBe(201);
    expect((await call('GET', '/payments/p-1')).body.refunded).toBe(1999);
  });

  it('can leave them pending and report later', async () => {
    const { call, refund, events } = await start({ pendingRefundsMs: 50 });
    await call('POST', '/payments', { ...bill, paymentId: 'p-1' });
    expect((await refund('f-1')).body.status).toBe('pending');
    await expect
      .poll(() => events().find(({ type }) => type === 'refund.succeeded')?.data)
      .toEqual({
        paymentId: 'p-1',
        ...bill,
      });
    expect((await call('GET', '/refunds/f-1')).body.status).toBe('succeeded');
    expect(await refund('f-1')).toMatchObject({ status: 200, body: { status: 'pending' } }); // the answer of then
  });

  it('fails as told: before the refund, after it, or by answering late', async () => {
    const { call, refund } = await start();
    await call('POST', '/payments', { ...bill, paymentId: 'p-1' });
    await call('POST', '/faults', { refunds: { status: 500, times: 2 } });
    expect([(await refund('f-1')).status, (await refund('f-1')).status]).toEqual([500, 500]);
    expect((await call('GET', '/refunds/f-1')).status).toBe(404);
    expect((await refund('f-1', { amount: 1 })).status).toBe(201);

    await call('POST', '/faults', { refunds: { status: 503, made: true } });
    expect((await refund('f-2', { amount: 2 })).status).toBe(503);
    expect((await call('GET', '/refunds/f-2')).status).toBe(200);

    await call('POST', '/faults', { refunds: { hang: 300 } });
    const late = refund('f-3', { amount: 3 });
    await expect.poll(async () => (await call('GET', '/refunds/f-3')).status).toBe(200);
    expect((await late).status).toBe(201);
    expect((await call('GET', '/payments/p-1')).body.refunded).toBe(6);
  });
});

it('lets nobody in without the token, when it has one', async () => {
  const { call } = await start({ token: 'let-me-in' });
  const refused = await call('GET', '/payments');
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  const authorization = 'Bearer let-me-in';
  expect((await call('GET', '/payments', undefined, { authorization })).status).toBe(200);
});

it('closes at once, with deliveries still to be tried and a refund that hangs', async () => {
  const { url } = await startReceiver();
  const provider = await startProvider({ webhookUrl: url, webhookSecret: secret, delivery: { backoffMs: 60_000 } });
  const post = (path: string, body: unknown) =>
    fetch(provider.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'f-1' },
      body: JSON.stringify(body),
    });
  await post('/payments', { ...bill, paymentId: 'p-1', delayMs: 600_000 });
  await post('/faults', { refunds: { hang: 600_000 }, webhooks: { dropFirst: 9 } });
  await post('/payments', { ...bill, paymentId: 'p-2' });
  const hanging = post('/refunds', { refundId: 'f-1', paymentId: 'p-1', amount: 1, currency: 'EUR', reason: '' });
  const hungUp = expect(hanging).rejects.toThrow();
  await expect.poll(async () => (await fetch(`${provider.url}/refunds/f-1`)).status).toBe(200);
  await provider.close(); // the test's own time limit is the check
  await hungUp;
});

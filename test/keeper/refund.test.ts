/** Refunds: paid out exactly once by a real HTTP provider that fails, hangs, refuses, or makes them and does not say so. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildApp } from '../../src/http/app.ts';
import { payRefunds } from '../../src/keeper/refund.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { claimRefunds } from '../../src/ledger/refunds.ts';
import { httpProvider } from '../../src/provider/http.ts';
import { ProviderUnavailable, type PaymentProvider } from '../../src/provider/port.ts';
import { startProvider, type Provider } from '../../src/provider/standin.ts';
import { event, expectSound, newSale, openHouse, PRICE, SECRET, until, type House } from '../ledger/house.ts';

const TOKEN = 'the-provider-s-token';
const OPTIONS = { backoffMs: 10_000, keyLifetimeMs: 3_600_000, batch: 20 };

let house: House;
let api: Awaited<ReturnType<typeof buildApp>>['app'];
let standin: Provider;
let provider: ReturnType<typeof counting>;

beforeAll(async () => {
  house = await openHouse();
  await newSale(house); // an audit without a sale judges nothing
  ({ app: api } = await buildApp({ ...house.wired, config: house.config }));
  const own = await api.listen({ host: '127.0.0.1', port: 0 });
  standin = await startProvider({ webhookUrl: `${own}/webhooks/payments`, webhookSecret: SECRET, token: TOKEN });
});
beforeEach(() => {
  provider = counting(httpProvider({ baseUrl: standin.url, token: TOKEN, timeoutMs: 1000 }));
});
afterEach(() => faults({ pendingRefundsMs: null }));
afterAll(async () => {
  await standin.close();
  await api.close();
  await house.close();
});

/** The real provider, and how often it was asked what. */
function counting(real: PaymentProvider) {
  const calls = { refund: 0, lookUp: 0 };
  const counted: PaymentProvider = {
    refund: (refund) => {
      calls.refund += 1;
      return real.refund(refund);
    },
    lookUp: (refund) => {
      calls.lookUp += 1;
      return real.lookUp(refund);
    },
  };
  return Object.assign(counted, { calls });
}

async function ask(method: string, path: string, body?: object) {
  const response = await fetch(standin.url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text === '' ? '{}' : text) as Record<string, unknown>;
}
const faults = (given: object) => ask('POST', '/faults', given);

let payments = 0;
/** Money that was captured for no reservation, so it is owed back. @returns its payment id */
async function owed(): Promise<string> {
  const reservationId = `order-${(payments += 1)}`;
  const { paymentId } = await ask('POST', '/payments', { reservationId, amount: PRICE, currency: 'EUR' });
  if (typeof paymentId !== 'string') throw new Error('no payment was made');
  await until(async () => (await refundOf(paymentId)) !== undefined);
  return paymentId;
}

type Row = { status: string; attempts: number; error: string | null; waits: number };
async function refundOf(paymentId: string): Promise<Row | undefined> {
  const { rows } = await house.db.query<Row>(
    `select status, attempts, last_error as error, extract(epoch from next_attempt_at - now())::float as waits
     from refunds where payment_id = $1`,
    [paymentId],
  );
  return rows[0];
}
/** Lets its time come. */
async function due(paymentId: string): Promise<void> {
  await house.db.query('update refunds set next_attempt_at = now() where payment_id = $1', [paymentId]);
}
const givenBack = async (paymentId: string) => (await ask('GET', `/payments/${paymentId}`))['refunded'];
const pass = (by: PaymentProvider = provider) => payRefunds(house.stores, by, OPTIONS);

test('a refund that is owed is paid, and then left alone', async () => {
  const paymentId = await owed();
  expect(await pass()).toEqual({ succeeded: 1, submitted: 0, failed: 0, again: 0 });
  await due(paymentId);
  expect(await pass()).toEqual({ succeeded: 0, submitted: 0, failed: 0, again: 0 });
  expect(await refundOf(paymentId)).toMatchObject({ status: 'SUCCEEDED', attempts: 1, error: null });
  expect(await givenBack(paymentId)).toBe(PRICE);
  expect(provider.calls).toEqual({ refund: 1, lookUp: 0 });
});

test('the provider made it, and the process died before it was written down: the same key again, one refund', async () => {
  const paymentId = await owed();
  const [claimed] = await claimRefunds(house.pool, OPTIONS.backoffMs, 1);
  if (!claimed) throw new Error('nothing was claimed');
  expect(await provider.refund(claimed)).toEqual({ status: 'SUCCEEDED', detail: null });
  expect(await refundOf(paymentId)).toMatchObject({ status: 'PENDING' });

  expect((await pass()).succeeded).toBe(0); // not before its time: the other one may still be at it
  await due(paymentId);
  expect((await pass()).succeeded).toBe(1);
  expect(await givenBack(paymentId)).toBe(PRICE);
});

test.each([
  ['fails after it made it', { status: 500, made: true }],
  ['fails', { status: 503 }],
  ['hangs after it made it', { hang: 2500, made: true }],
  ['hangs', { hang: 2500 }],
  ['asks for patience', { status: 429 }],
])('a provider that %s: tried again, one refund', async (_, fault) => {
  const paymentId = await owed();
  await faults({ refunds: { ...fault, times: 1 } });
  expect(await pass()).toMatchObject({ again: 1, failed: 0 });
  const after = await refundOf(paymentId);
  expect(after).toMatchObject({ status: 'PENDING', attempts: 1 });
  expect(after?.error).toMatch(/POST \/refunds/);
  await due(paymentId);
  expect(await pass()).toMatchObject({ succeeded: 1 });
  expect(await refundOf(paymentId)).toMatchObject({ status: 'SUCCEEDED', attempts: 2, error: null });
  expect(await givenBack(paymentId)).toBe(PRICE);
});

test('the distance between attempts doubles, up to an hour', async () => {
  const paymentId = await owed();
  await faults({ refunds: { status: 500, times: 100 } });
  const waits: number[] = [];
  for (let n = 0; n < 12; n += 1) {
    await due(paymentId);
    await pass();
    waits.push(Math.round((await refundOf(paymentId))?.waits ?? 0));
  }
  const expected = [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600];
  waits.forEach((wait, n) => expect(Math.abs(wait - (expected[n] ?? 0)), `attempt ${n + 1}`).toBeLessThan(5));
  await faults({});
  await due(paymentId);
  await pass();
});

test('a provider that refuses: FAILED, visible, never tried again', async () => {
  const paymentId = await owed();
  await faults({ refunds: { status: 422, times: 1 } });
  expect(await pass()).toMatchObject({ failed: 1, again: 0 });
  const after = await refundOf(paymentId);
  expect(after).toMatchObject({ status: 'FAILED' });
  expect(after?.error).toMatch(/^POST \/refunds: 422 /);
  const told = house.log.filter((line) => line.level === 50 && line['paymentId'] === paymentId);
  expect(told.map(({ msg }) => msg)).toEqual(['the provider refuses a refund: a person must look']);
  await due(paymentId);
  expect(await pass()).toEqual({ succeeded: 0, submitted: 0, failed: 0, again: 0 });
});

test('a token that is wrong, or being replaced, refuses no refund', async () => {
  const paymentId = await owed();
  expect(await pass(httpProvider({ baseUrl: standin.url, token: 'the-old-one', timeoutMs: 1000 }))).toMatchObject({
    again: 1,
    failed: 0,
  });
  expect((await refundOf(paymentId))?.error).toMatch(/401/);
  await due(paymentId);
  expect(await pass()).toMatchObject({ succeeded: 1 });
});

describe('a refund that the provider reports later', () => {
  test('is SUBMITTED, then SUCCEEDED by webhook; it is looked up and not asked for meanwhile', async () => {
    const paymentId = await owed();
    await faults({ pendingRefundsMs: 1500 });
    expect(await pass()).toMatchObject({ submitted: 1 });
    expect(await refundOf(paymentId)).toMatchObject({ status: 'SUBMITTED' });
    await due(paymentId);
    expect(await pass()).toMatchObject({ submitted: 1 });
    expect(provider.calls).toEqual({ refund: 1, lookUp: 1 });
    await until(async () => (await refundOf(paymentId))?.status === 'SUCCEEDED');
    expect(await givenBack(paymentId)).toBe(PRICE);
  });

  test('is found by looking it up when its webhook is lost', async () => {
    const paymentId = await owed();
    await faults({ pendingRefundsMs: 50, webhooks: { dropFirst: 1000 } });
    expect(await pass()).toMatchObject({ submitted: 1 });
    await until(async () => {
      await due(paymentId);
      return (await pass()).succeeded === 1;
    });
    expect(provider.calls.refund).toBe(1);
    expect(await refundOf(paymentId)).toMatchObject({ status: 'SUCCEEDED' });
  });

  test('stays what the webhook said when the answer to the call comes later', async () => {
    const paymentId = await owed();
    const slow: PaymentProvider = {
      ...provider,
      refund: async (refund) => {
        const answer = await provider.refund(refund);
        await applyEvent(house.pool, {
          ...event({ reservationId: 'x', amount: PRICE, currency: 'EUR' } as never, 'refund.succeeded'),
          paymentId,
        });
        return { ...answer, status: 'SUBMITTED' };
      },
    };
    await pass(slow);
    expect(await refundOf(paymentId)).toMatchObject({ status: 'SUCCEEDED' });
  });
});

describe('a retry that comes so late that the provider may have forgotten the key', () => {
  const old = (paymentId: string) =>
    house.db.query(
      `update refunds set created_at = created_at - interval '2 h', next_attempt_at = now() where payment_id = $1`,
      [paymentId],
    );

  test('looks first, and finds it made', async () => {
    const paymentId = await owed();
    await faults({ refunds: { status: 500, made: true, times: 1 } });
    expect(await pass()).toMatchObject({ again: 1 });
    await old(paymentId);
    expect(await pass()).toMatchObject({ succeeded: 1 });
    expect(provider.calls).toEqual({ refund: 1, lookUp: 1 });
    expect(await givenBack(paymentId)).toBe(PRICE);
  });

  test('looks first, and asks for it when the provider has never heard of it', async () => {
    const paymentId = await owed();
    await old(paymentId);
    expect(await pass()).toMatchObject({ succeeded: 1 });
    expect(provider.calls).toEqual({ refund: 1, lookUp: 1 });
    expect(await givenBack(paymentId)).toBe(PRICE);
  });
});

test('three keepers at once: each refund is asked for once', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 30; n += 1) ids.push(await owed());
  const done = await Promise.all([pass(), pass(), pass()]);
  expect(done.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(30);
  expect(provider.calls.refund).toBe(30);
  for (const paymentId of ids) expect(await givenBack(paymentId)).toBe(PRICE);
});

test('one refund that goes wrong in an unknown way does not keep the others from being written down', async () => {
  const ids = [await owed(), await owed(), await owed()];
  const odd: PaymentProvider = {
    ...provider,
    refund: (refund) => (refund.paymentId === ids[1] ? Promise.reject(new TypeError('odd')) : provider.refund(refund)),
  };
  await expect(pass(odd)).rejects.toThrow('odd');
  const statuses: unknown[] = [];
  for (const paymentId of ids) statuses.push((await refundOf(paymentId))?.status);
  expect(statuses).toEqual(['SUCCEEDED', 'PENDING', 'SUCCEEDED']);
  for (const paymentId of ids) await due(paymentId);
  await pass();
});

test('a payment of zero is owed back as nothing: the provider is not called', async () => {
  const zero = { eventId: 'evt-zero', type: 'payment.succeeded' as const, paymentId: 'pay-zero', amount: 0 };
  await applyEvent(house.pool, { ...zero, reservationId: 'nobody', currency: 'EUR' });
  expect(await pass()).toEqual({ succeeded: 0, submitted: 0, failed: 0, again: 0 });
  expect(await refundOf('pay-zero')).toMatchObject({ status: 'SUCCEEDED', attempts: 0 });
});

test('the audit finds the money sound that was left behind', async () => {
  await expectSound(house);
});

describe('what the provider’s answers mean', () => {
  let scripted: Server;
  let answer: { status: number; body: string };
  let asked: string[];
  const refund = { refundId: 'r/1', paymentId: 'p', amount: 1, currency: 'EUR', reason: 'expired' as const };
  const claimed = { ...refund, status: 'PENDING' as const, attempts: 1, ageMs: 0 };
  const at = (path = '') => {
    const { port } = scripted.address() as AddressInfo;
    return httpProvider({ baseUrl: `http://127.0.0.1:${port}${path}`, token: '', timeoutMs: 300 });
  };

  beforeAll(async () => {
    scripted = createServer((request, response) => {
      asked.push(`${request.method ?? ''} ${request.url ?? ''}`);
      response.writeHead(answer.status).end(answer.body);
    });
    await new Promise<void>((listening) => scripted.listen(0, '127.0.0.1', listening));
  });
  beforeEach(() => {
    asked = [];
  });
  afterAll(() => {
    scripted.closeAllConnections();
    scripted.close();
  });

  test.each([
    [200, '{"status":"succeeded"}', 'SUCCEEDED', 'SUCCEEDED'],
    [201, '{"status":"pending","more":1}', 'SUBMITTED', 'SUBMITTED'],
    [200, '{"status":"failed","detail":"closed \\u0000 account"}', 'FAILED', 'FAILED'],
    [200, '{"status":"maybe"}', 'again', 'again'],
    [200, '<html>', 'again', 'again'],
    [200, '', 'again', 'again'],
    [400, 'no', 'FAILED', 'again'],
    [401, 'no', 'again', 'again'],
    [403, 'no', 'again', 'again'],
    [404, 'no', 'FAILED', 'unknown'],
    [408, 'no', 'again', 'again'],
    [409, 'no', 'again', 'again'],
    [422, 'no', 'FAILED', 'again'],
    [425, 'no', 'again', 'again'],
    [429, 'no', 'again', 'again'],
    [500, 'x\0y', 'again', 'again'],
    [503, 'no', 'again', 'again'],
  ])('%i %j: asked for, %s; looked up, %s', async (status, body, toAsking, toLooking) => {
    answer = { status, body };
    const said = (reply: Promise<{ status: string } | undefined>) =>
      reply.then(
        (found) => found?.status ?? 'unknown',
        (error: unknown) => {
          expect(error).toBeInstanceOf(ProviderUnavailable);
          expect(String(error)).not.toContain('\0');
          return 'again';
        },
      );
    expect(await said(at().refund(claimed))).toBe(toAsking);
    expect(await said(at().lookUp(claimed))).toBe(toLooking);
  });

  test('an address with a path keeps it; an id is one part of the path', async () => {
    answer = { status: 200, body: '{"status":"succeeded"}' };
    await at('/api/v2').refund(claimed);
    await at('/api/v2/').lookUp(claimed);
    expect(asked).toEqual(['POST /api/v2/refunds', 'GET /api/v2/refunds/r%2F1']);
  });

  test('nobody there: tried again', async () => {
    const nobody = httpProvider({ baseUrl: 'http://127.0.0.1:9', token: '', timeoutMs: 300 });
    await expect(nobody.refund(claimed)).rejects.toBeInstanceOf(ProviderUnavailable);
    await expect(nobody.lookUp(claimed)).rejects.toBeInstanceOf(ProviderUnavailable);
  });
});

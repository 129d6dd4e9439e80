/**
 * The built app on stores of a test file's own, and the few calls that most tests make. Requests go through `inject`
 * (the app without a socket) unless a test is about the socket.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import { Redis } from 'ioredis';
import pg from 'pg';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { expect, vi } from 'vitest';
import { roomOf } from '../../src/commands/room.ts';
import { readConfig, type Config } from '../../src/config.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { buildApp, type BuiltApp } from '../../src/http/app.ts';
import { problems, type ProblemCode } from '../../src/http/problem.ts';
import { wire, workerOptions, type Wired } from '../../src/wiring.ts';
import { startWorker } from '../../src/worker/worker.ts';
import { Conformity, type Document } from './conform.ts';

export const SERVICE = 'service-token-of-the-tests';
export const ADMIN = 'admin-token-of-the-tests';
export const SECRET = `whsec_${Buffer.from('a secret of 24 bytes or more').toString('base64')}`;

/** Beside the stores: what every process of a test is started with. */
export const settings = {
  NODE_ENV: 'test',
  PORT: '0',
  SERVICE_TOKEN: SERVICE,
  ADMIN_TOKEN: ADMIN,
  WEBHOOK_SECRET: SECRET,
  QUEUE_WAIT_SECONDS: '0', // a worker of a test is stopped at once
  WORKER_RECEIVERS: '1',
  WORKER_BATCH: '10',
  ...{ REQUEST_DEADLINE_MS: '8000', GATE_TIMEOUT_MS: '4000', QUEUE_TIMEOUT_MS: '4000' }, // the machine may be busy
  UNQUEUED_GRACE_MS: '10000',
  DB_CONNECT_TIMEOUT_MS: '10000',
};

/** For tests of what happens when a store is away: the program's own time limits. */
export const shortLimits = {
  REQUEST_DEADLINE_MS: '2000',
  GATE_TIMEOUT_MS: '500',
  QUEUE_TIMEOUT_MS: '1000',
  DB_CONNECT_TIMEOUT_MS: '2000',
};

/** Units and holders at the gate: what no refused request may change. */
export type GateState = { stock: string | null; held: string | null; version: string | null; buyers: number };

export type TestApi = BuiltApp & {
  config: Config;
  wired: Wired;
  redis: Redis;
  db: pg.Pool;
  /** What was logged as a warning or worse. */
  log: Record<string, unknown>[];
  /** Every answer of `inject` is held to the document. */
  conformity: Conformity;
  url: () => Promise<string>;
  close: () => Promise<void>;
};

/**
 * @param env addresses of the stores, as `freshStores().env` has them, and settings that differ from the usual ones
 * @param connect the test's own connection to Redis, when REDIS_URL is not simply its address
 */
export async function testApi(
  env: Record<string, string>,
  connect = (url: string): Redis => new Redis(url, { maxRetriesPerRequest: 0 }),
): Promise<TestApi> {
  // The AWS client looks for its credentials there and nowhere else.
  for (const [name, value] of Object.entries(env)) if (name.startsWith('AWS_')) process.env[name] = value;
  const config = readConfig({ ...settings, ...env });
  const log: Record<string, unknown>[] = [];
  const logger = pino(
    { level: 'warn' },
    { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const wired = wire(config, logger);
  const built = await buildApp({
    ...wired,
    config,
    room: roomOf(wired.registry, { ...process.env, ...settings, ...env }),
  });
  await built.app.ready();
  const conformity = holdToDocument(built.app);
  await built.directory.start(config.SALES_REFRESH_MS);
  const redis = connect(config.REDIS_URL);
  redis.on('error', () => undefined); // tests that stop Redis see it in the answers
  const db = new pg.Pool({ connectionString: config.DATABASE_URL, max: 2 });
  db.on('error', () => undefined); // likewise
  let address: Promise<string> | undefined;
  return {
    ...built,
    config,
    wired,
    redis,
    db,
    log,
    conformity,
    url: () => (address ??= built.app.listen({ host: '127.0.0.1', port: 0 })),
    close: async () => {
      await built.app.close();
      built.directory.stop();
      redis.disconnect();
      await Promise.all([wired.close(), db.end()]);
    },
  };
}

/** Whatever a test asks for, its answer must be one that the document of this app has. */
function holdToDocument(app: FastifyInstance): Conformity {
  const conformity = new Conformity(app.swagger() as unknown as Document);
  const inject = app.inject.bind(app) as (options: string | InjectOptions) => Promise<LightMyRequestResponse>;
  const checked = async (options: string | InjectOptions) => {
    const answer = await inject(options);
    const { method = 'GET', url, payloadAsStream } = typeof options === 'string' ? { url: options } : options;
    if (payloadAsStream === true) return answer; // without an end there is nothing to check yet
    if (typeof url === 'string') conformity.check(method, url, answer);
    return answer;
  };
  app.inject = checked as typeof app.inject;
  return conformity;
}

export const asShop = { authorization: `Bearer ${SERVICE}` };
export const asAdmin = { authorization: `Bearer ${ADMIN}` };

/** Settings of a sale that is open now. */
export function saleSettings(changes: Record<string, unknown> = {}) {
  const now = Date.now();
  return {
    name: 'A phone',
    total: 10,
    startsAt: new Date(now - 60_000).toISOString(),
    endsAt: new Date(now + 3_600_000).toISOString(),
    holdSeconds: 600,
    maxPerReservation: 3,
    price: { amount: 49_900, currency: 'EUR' },
    ...changes,
  };
}

/** Creates or changes a sale through the interface. @returns its id */
export async function putSale({ app }: TestApi, changes: Record<string, unknown> = {}, saleId = newId()) {
  const response = await app.inject({
    method: 'PUT',
    url: `/admin/sales/${saleId}`,
    headers: asAdmin,
    payload: saleSettings(changes),
  });
  expect([200, 201], response.body).toContain(response.statusCode);
  return saleId;
}

export const newId = () => randomUUID().slice(0, 13);

export function press({ app }: TestApi, saleId: string, userId: string, qty?: number) {
  return app.inject({
    method: 'POST',
    url: `/sales/${saleId}/reserve`,
    headers: asShop,
    payload: { userId, ...(qty === undefined ? {} : { qty }) },
  });
}

export type Won = {
  outcome: 'ok' | 'dup';
  reservationId: string;
  saleId: string;
  userId: string;
  qty: number;
  amount: number;
  currency: string;
  reservedAt: string;
  expiresAt: string;
};

/** Presses and must win, or hold already. */
export async function win(api: TestApi, saleId: string, userId: string, qty?: number): Promise<Won> {
  const response = await press(api, saleId, userId, qty);
  expect([200, 202], response.body).toContain(response.statusCode);
  return response.json();
}

export function ask({ app }: TestApi, url: string, options: InjectOptions = {}) {
  return app.inject({ method: 'GET', url, headers: asShop, ...options });
}

export function admin({ app }: TestApi, method: 'GET' | 'POST' | 'PUT', path: string, payload?: object) {
  return app.inject({ method, url: `/admin/sales${path}`, headers: asAdmin, ...(payload ? { payload } : {}) });
}

/** The answer is this problem, whole: status, media type, members, and the headers that go with its status. */
export function expectProblem(
  response: Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'>,
  code: ProblemCode,
): Record<string, unknown> {
  const body = JSON.parse(response.body) as Record<string, unknown>;
  const [status, title] = problems[code];
  expect(body).toMatchObject({ type: `urn:flashgate:problem:${code}`, title, status, code });
  expect(response.statusCode).toBe(status);
  expect(response.headers['content-type']).toMatch(/^application\/problem\+json(; charset=utf-8)?$/);
  expect(response.body).not.toMatch(/\bat .*\.(ts|js):\d/); // a stack trace
  if (status === 401) expect(response.headers['www-authenticate']).toMatch(/^Bearer realm=/);
  if (status === 405) expect(response.headers.allow).toMatch(/^[A-Z]+(, [A-Z]+)*$/);
  if (status === 503) expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  return body;
}

export async function gateState({ redis }: TestApi, saleId: string): Promise<GateState> {
  const [stock, buyers, , , sale] = gateKeys(saleId);
  const [held = null, version = null] = await redis.hmget(sale, 'held', 'version');
  return { stock: await redis.get(stock), held, version, buyers: await redis.scard(buyers) };
}

export const reservationUrl = ({ saleId, reservationId, userId }: Pick<Won, 'saleId' | 'reservationId' | 'userId'>) =>
  `/sales/${saleId}/reservations/${reservationId}?userId=${encodeURIComponent(userId)}`;

/** Runs a worker until `condition` holds, then stops it. */
export async function work({ wired, config }: TestApi, condition: () => Promise<boolean>): Promise<void> {
  const worker = startWorker(wired.stores, wired.sqs, workerOptions(config));
  try {
    await vi.waitFor(async () => expect(await condition()).toBe(true), { timeout: 10_000, interval: 20 });
  } finally {
    await worker.stop();
  }
}

/** Runs a worker until these reservations have orders. */
export function record(api: TestApi, ...won: Won[]): Promise<void> {
  const ids = won.map(({ reservationId }) => reservationId);
  return work(api, async () => {
    const found = await api.db.query('select 1 from sale_orders where reservation_id = any($1::uuid[])', [ids]);
    return found.rowCount === ids.length;
  });
}

export type Paying = { type?: string; paymentId?: string; amount?: number; currency?: string };

/** A payment event for a reservation, as the provider writes it. */
export function eventOf(won: Pick<Won, 'reservationId' | 'amount' | 'currency'>, changes: Paying = {}) {
  const { type = 'payment.succeeded', ...data } = changes;
  const { reservationId, amount, currency } = won;
  return {
    type,
    timestamp: new Date().toISOString(),
    data: { paymentId: `pay-${newId()}`, reservationId, amount, currency, ...data },
  };
}

/** Headers that sign these bytes. */
export function signed(body: string, { id = `evt-${newId()}`, at = new Date(), secret = SECRET } = {}) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}

/** Delivers an event with a good signature. */
export function deliver({ app }: TestApi, event: unknown, id?: string) {
  const payload = typeof event === 'string' ? event : JSON.stringify(event);
  const headers = { 'content-type': 'application/json', ...signed(payload, id === undefined ? {} : { id }) };
  return app.inject({ method: 'POST', url: '/webhooks/payments', headers, payload });
}

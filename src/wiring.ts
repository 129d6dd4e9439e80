/** The only place where clients are made: from checked settings to the stores that everything else is given. */
import { SQSClient } from '@aws-sdk/client-sqs';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { Config } from './config.ts';
import { Gate } from './gate/gate.ts';
import { registerMetrics } from './metrics.ts';
import { createPool } from './ledger/db.ts';
import { LeaseStore } from './gate/lease-store.ts';
import { Leases } from './keeper/leases.ts';
import type { RebuildOptions } from './keeper/rebuild.ts';
import type { KeeperOptions } from './keeper/keeper.ts';
import type { Stores } from './operations/stores.ts';
import { httpProvider } from './provider/http.ts';
import { isLive, stripeProvider } from './provider/stripe.ts';
import type { PaymentProvider } from './provider/port.ts';
import { Producer } from './queue/producer.ts';
import { connected, createRedis, disconnect } from './redis.ts';
import type { CourierOptions } from './webhooks/courier.ts';
import { createPoster, type Poster } from './webhooks/post.ts';
import type { WorkerOptions } from './worker/worker.ts';

export type Wired = {
  stores: Stores;
  leases: Leases;
  registry: Registry;
  sqs: SQSClient;
  logger: Logger;
  provider: PaymentProvider | undefined;
  /** Calls the shop's endpoints. */
  poster: Poster;
  /** Resolves once Redis is connected, or it is clear that it is not: then whoever asks it is told so. */
  connected: () => Promise<void>;
  /** Lets what is under way end, then closes the connections. */
  close: () => Promise<void>;
};

export { createLogger } from './log.ts';

export function wire(config: Config, logger: Logger): Wired {
  const registry = new Registry();
  registerMetrics(registry);
  const redis = createRedis(config, logger);
  const gate = new Gate(redis, {
    timeoutMs: config.GATE_TIMEOUT_MS,
    batch: config.GATE_BATCH,
    pending: config.GATE_PENDING,
    latch: {
      periodMs: config.LATCH_MS,
      holders: config.LATCH_HOLDERS,
      onError: (error) =>
        logger.warn({ err: error }, 'the holders of a sale could not be read: every buyer asks Redis'),
    },
  });
  const pool = createPool({
    connectionString: config.DATABASE_URL,
    max: config.DB_POOL,
    connectTimeoutMs: config.DB_CONNECT_TIMEOUT_MS,
    lockTimeoutMs: config.DB_LOCK_TIMEOUT_MS,
    statementTimeoutMs: config.DB_STATEMENT_TIMEOUT_MS,
    idleInTransactionTimeoutMs: config.DB_IDLE_IN_TRANSACTION_TIMEOUT_MS,
    onIdleError: (error) => logger.warn({ err: error }, 'an idle connection to Postgres was lost'),
  });
  const sqs = createSqs(config);
  const producer = new Producer(sqs, {
    queueUrl: config.SQS_QUEUE_URL,
    timeoutMs: config.QUEUE_TIMEOUT_MS,
    inFlight: config.QUEUE_SENDS_IN_FLIGHT,
    pending: config.QUEUE_PENDING,
  });
  const poster = createPoster({
    timeoutMs: config.WEBHOOKS_TIMEOUT_MS,
    allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE,
  });
  return {
    stores: { pool, gate, producer, log: logger },
    registry,
    leases: new Leases(new LeaseStore(redis, config.GATE_TIMEOUT_MS), pool, logger, { ttlMs: config.LEASE_TTL_MS }),
    sqs,
    logger,
    provider: createProvider(config, logger),
    poster,
    connected: () => connected(redis, config),
    close: async () => {
      await producer.drained();
      await gate.drained();
      disconnect(redis);
      sqs.destroy();
      await poster.close();
      await pool.end();
    },
  };
}

/** @returns undefined where refunds are not paid out, as no provider is set */
function createProvider(config: Config, logger: Logger): PaymentProvider | undefined {
  const { PAYMENT_PROVIDER_URL: baseUrl, PROVIDER_TIMEOUT_MS: timeoutMs, STRIPE_SECRET_KEY: keys } = config;
  if (config.PAYMENT_PROVIDER === 'http') {
    return baseUrl === undefined
      ? undefined
      : httpProvider({ baseUrl, token: config.PAYMENT_PROVIDER_TOKEN, timeoutMs });
  }
  if (config.NODE_ENV === 'production' && !isLive(keys)) {
    logger.warn({}, 'STRIPE_SECRET_KEY is a test key, and NODE_ENV=production: no money is taken');
  }
  return stripeProvider({
    keys,
    timeoutMs,
    webhookSecrets: config.STRIPE_WEBHOOK_SECRET,
    apiBase: config.STRIPE_API_BASE,
    successUrl: config.CHECKOUT_SUCCESS_URL ?? '',
    cancelUrl: config.CHECKOUT_CANCEL_URL ?? '',
  });
}

function createSqs(config: Config): SQSClient {
  const seconds = (config.QUEUE_WAIT_SECONDS + 5) * 1000;
  return new SQSClient({
    region: config.AWS_REGION,
    ...(config.SQS_ENDPOINT === undefined ? {} : { endpoint: config.SQS_ENDPOINT }),
    maxAttempts: 2,
    requestHandler: new NodeHttpHandler({
      connectionTimeout: config.QUEUE_TIMEOUT_MS,
      requestTimeout: Math.max(seconds, config.QUEUE_TIMEOUT_MS),
      throwOnRequestTimeout: true,
      // Enough for every send and every long poll at once, so that no send waits behind a poll.
      httpAgent: { keepAlive: true, maxSockets: config.QUEUE_SENDS_IN_FLIGHT + config.WORKER_RECEIVERS * 2 + 8 },
      httpsAgent: { keepAlive: true, maxSockets: config.QUEUE_SENDS_IN_FLIGHT + config.WORKER_RECEIVERS * 2 + 8 },
    }),
  });
}

export function workerOptions(config: Config): WorkerOptions {
  return {
    queueUrl: config.SQS_QUEUE_URL,
    receivers: config.WORKER_RECEIVERS,
    batch: config.WORKER_BATCH,
    waitSeconds: config.QUEUE_WAIT_SECONDS,
    visibilitySeconds: config.QUEUE_VISIBILITY_SECONDS,
  };
}

export function rebuildOptions(config: Config): RebuildOptions {
  return { queueUrl: config.SQS_QUEUE_URL, drainMs: config.REBUILD_DRAIN_MS, timeoutMs: config.QUEUE_TIMEOUT_MS };
}

export function keeperOptions(config: Config): KeeperOptions {
  const timeoutMs = config.QUEUE_TIMEOUT_MS * 5; // a whole batch of sends
  return {
    intervalMs: config.KEEPER_INTERVAL_MS,
    batch: config.KEEPER_BATCH,
    parkedGraceMs: config.PARKED_GRACE_MS,
    reconcileMs: config.RECONCILE_INTERVAL_MS,
    tend: {
      resend: { graceMs: config.UNQUEUED_GRACE_MS, batch: config.KEEPER_BATCH, timeoutMs },
      rebuild: rebuildOptions(config),
    },
    reconcile: { batch: config.KEEPER_BATCH, lostGraceMs: config.LOST_GRACE_MS, timeoutMs },
    refund: {
      backoffMs: config.PROVIDER_TIMEOUT_MS * 2,
      keyLifetimeMs: config.PROVIDER_KEY_LIFETIME_MS,
      batch: 20,
    },
    pages: { backoffMs: config.PROVIDER_TIMEOUT_MS * 2, batch: 20 },
  };
}

export function courierOptions(config: Config): CourierOptions {
  return {
    intervalMs: config.KEEPER_INTERVAL_MS,
    inFlight: config.WEBHOOKS_IN_FLIGHT,
    timeoutMs: config.WEBHOOKS_TIMEOUT_MS,
    retentionMs: config.WEBHOOKS_RETENTION_MS,
  };
}

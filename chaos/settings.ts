/** The settings of a chaos run: everything that waits is short, so that a repair is seen in a run of two minutes. */
import { randomBytes } from 'node:crypto';

export const SETTINGS = {
  HOST: '127.0.0.1',
  LOG_LEVEL: 'info',
  API_PROCESSES: '1', // a signal is to hit the process that serves
  REQUEST_DEADLINE_MS: '1200',
  SHUTDOWN_DEADLINE_MS: '6000',
  SALES_REFRESH_MS: '500',
  GATE_TIMEOUT_MS: '320',
  QUEUE_TIMEOUT_MS: '600',
  QUEUE_WAIT_SECONDS: '1',
  QUEUE_VISIBILITY_SECONDS: '4',
  WORKER_RECEIVERS: '2',
  WORKER_BATCH: '20',
  DB_POOL: '8',
  DB_CONNECT_TIMEOUT_MS: '1000',
  DB_LOCK_TIMEOUT_MS: '1000',
  DB_STATEMENT_TIMEOUT_MS: '2000',
  // Longer than any freeze: a keeper that freezes with order rows locked keeps them, and adopts what is still live.
  DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: '12000',
  KEEPER_INTERVAL_MS: '200',
  RECONCILE_INTERVAL_MS: '1000',
  LEASE_TTL_MS: '2000',
  UNQUEUED_GRACE_MS: '1500',
  LOST_GRACE_MS: '4000',
  REBUILD_DRAIN_MS: '3000',
  PARKED_GRACE_MS: '8000',
  PROVIDER_TIMEOUT_MS: '700',
} as const;

/** New ones for every run. */
export const SECRETS = {
  SERVICE_TOKEN: randomBytes(24).toString('hex'),
  ADMIN_TOKEN: randomBytes(24).toString('hex'),
  WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64')}`,
};

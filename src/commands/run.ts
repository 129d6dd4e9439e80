/** Long-running commands: start, wait for the signal to stop, stop in order, within the deadline. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig, type Config } from '../config.ts';
import { buildApp } from '../http/app.ts';
import type { Room } from '../http/ops/room.ts';
import { buildMetricsApp } from '../http/metrics-app.ts';
import { figuresFrom, registerFigures } from '../figures.ts';
import { registerPart } from '../metrics.ts';
import { startKeeper } from '../keeper/keeper.ts';
import { checkSchema } from '../ledger/migrate.ts';
import { startTracing } from '../tracing.ts';
import { courierOptions, createLogger, keeperOptions, wire, workerOptions, type Wired } from '../wiring.ts';
import { startCourier } from '../webhooks/courier.ts';
import { roomOf } from './room.ts';
import { startWorker } from '../worker/worker.ts';

/** Something that runs until it is stopped. */
export type Running = { stop: () => Promise<void> };
type Start = (wired: Wired, config: Config) => Promise<Running>;

export const startApi: Start = (wired, config) => startApiWith(wired, config, roomOf(wired.registry, process.env));

/** @param room what the operations room may have done */
export async function startApiWith(wired: Wired, config: Config, room: Room): Promise<Running> {
  const { stores, sqs, registry, logger, provider } = wired;
  registerPart(registry, 'api');
  const { app, directory, drain } = await buildApp({ stores, sqs, config, logger, provider, room });
  await directory.start(config.SALES_REFRESH_MS);
  const address = await app.listen({ host: config.HOST, port: config.PORT });
  logger.info({ address }, 'the API listens');
  return {
    stop: async () => {
      drain(); // the balancer sees it at /readyz while requests are still served
      await sleep(config.SHUTDOWN_DELAY_MS);
      await app.close(); // answers what is in flight
      directory.stop();
    },
  };
}

export const startWork: Start = ({ stores, sqs, registry, logger }, config) => {
  registerPart(registry, 'worker');
  const worker = startWorker(stores, sqs, workerOptions(config));
  logger.info({ queue: config.SQS_QUEUE_URL }, 'the worker receives');
  return Promise.resolve(worker);
};

export const startKeep: Start = (wired, config) => {
  const { stores, sqs, leases, registry, provider, poster, logger } = wired;
  registerPart(registry, 'keeper');
  registerFigures(registry, figuresFrom(wired, config));
  if (!provider) logger.warn({}, 'PAYMENT_PROVIDER_URL is not set: refunds stay owed until a keeper has one');
  if (config.WEBHOOKS_ALLOW_PRIVATE) {
    logger.warn({}, 'WEBHOOKS_ALLOW_PRIVATE=true: webhooks may go to any address that this process can reach');
  }
  const keeper = startKeeper({ stores, sqs, leases, provider }, keeperOptions(config));
  const courier = startCourier({ pool: stores.pool, log: stores.log, poster }, courierOptions(config));
  return Promise.resolve({
    stop: async () => {
      await Promise.all([keeper.stop(), courier.stop()]);
    },
  });
};

/** The metrics port, when there is one. */
async function startMetrics({ registry }: Wired, config: Config, ready: () => boolean): Promise<Running> {
  const app = buildMetricsApp({ contentType: registry.contentType, metrics: () => registry.metrics(), ready });
  if (config.METRICS_PORT !== undefined) await app.listen({ host: config.HOST, port: config.METRICS_PORT });
  return { stop: () => app.close() };
}

/** From a supervisor, Ctrl-C, and a terminal that is closed. */
const STOPS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** @returns the first of these signals that comes; none of them ends this process from here on */
export const signalled = (signals: readonly NodeJS.Signals[]): Promise<string> =>
  Promise.race(signals.map((name) => once(process, name).then(() => name)));

/**
 * Runs parts of the system in this process, which traces call `part`, until one of the signals comes, then stops them in the given order.
 * @returns the exit code: 0 when all ended by itself in time; the deadline forces 1
 * @throws {SchemaMismatch} when the database is not this version's
 */
export async function runUntilSignal(
  part: string,
  starts: Start[],
  config = readConfig(process.env),
  stops = STOPS,
): Promise<number> {
  const logger = createLogger(config);
  const tracing = await startTracing(process.env, part, logger);
  const wired = wire(config, logger);
  const parts: Running[] = [];
  let ready = false;
  try {
    await checkSchema(wired.stores.pool);
    const signal = signalled(stops); // from here on there is something to be stopped in order, also while it starts
    parts.push(await startMetrics(wired, config, () => ready));
    for (const start of starts) parts.push(await start(wired, config));
    ready = true;
    logger.info({ signal: await signal }, 'stopping');
  } finally {
    ready = false;
    const forced = setTimeout(() => {
      logger.fatal({ deadlineMs: config.SHUTDOWN_DEADLINE_MS }, 'not everything ended in time: exiting all the same');
      process.exit(1);
    }, config.SHUTDOWN_DEADLINE_MS);
    const [metrics, ...others] = parts;
    for (const part of others) await part.stop();
    await wired.close();
    await tracing.stop();
    await metrics?.stop(); // last, so that the draining can be watched
    clearTimeout(forced);
  }
  logger.info({}, 'stopped');
  return 0;
}

export const workCommand = () => runUntilSignal('work', [startWork]);
export const keepCommand = () => runUntilSignal('keep', [startKeep]);

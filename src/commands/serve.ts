/**
 * `flashgate serve`: one API process per core behind one port. The first process only starts the others, restarts one
 * that died, replaces them one by one on SIGHUP, and shows the metrics of all of them on one page.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { AggregatorRegistry } from 'prom-client';
import { readConfig, type Config } from '../config.ts';
import { buildMetricsApp } from '../http/metrics-app.ts';
import { createLogger } from '../wiring.ts';
import { tellMetrics } from './room.ts';
import { runUntilSignal, startApi } from './run.ts';

/** A process that dies again and again is not started faster than this. */
const RESTART_AFTER_MS = 1000;

export async function serveCommand(): Promise<number> {
  const config = readConfig(process.env);
  if (config.API_PROCESSES === 1) return runUntilSignal('serve', [startApi], config);
  if (cluster.isWorker) {
    new AggregatorRegistry(); // answers the first process, which alone has a metrics port
    const code = await runUntilSignal('serve', [startApi], { ...config, METRICS_PORT: undefined });
    process.disconnect();
    return code;
  }
  return lead(config, createLogger(config));
}

async function lead(config: Config, logger: Logger): Promise<number> {
  let stopping = false;
  const metrics = new AggregatorRegistry();
  const app = buildMetricsApp({
    contentType: metrics.contentType,
    metrics: () => metrics.clusterMetrics(),
    ready: () => !stopping && workers().length > 0,
  });
  tellMetrics(() => metrics.clusterMetrics());
  let failed = 0;
  cluster.on('exit', (worker, code) => {
    if (stopping || worker.exitedAfterDisconnect) return;
    logger.error({ pid: worker.process.pid, code }, 'an API process died: another one is started');
    failed = code;
    setTimeout(() => {
      if (!stopping) cluster.fork();
    }, RESTART_AFTER_MS);
  });
  const first = Array.from({ length: config.API_PROCESSES }, () => cluster.fork());
  const outcomes = await Promise.all(first.map((worker) => Promise.race([listening(worker), ended(worker)])));
  if (outcomes.includes('ended')) {
    stopping = true;
    await endAll(workers());
    return failed || 1; // it has said why
  }
  if (config.METRICS_PORT !== undefined) await app.listen({ host: config.HOST, port: config.METRICS_PORT });
  logger.info({ processes: config.API_PROCESSES }, 'all API processes listen; SIGHUP replaces them one by one');
  process.on('SIGHUP', () => void replaceAll(logger, () => stopping));
  const signal = await Promise.race(['SIGTERM', 'SIGINT'].map((name) => once(process, name).then(() => name)));
  logger.info({ signal }, 'stopping all API processes');
  stopping = true;
  const codes = await endAll(workers());
  await app.close();
  return Math.max(...codes, 0);
}

const workers = (): Worker[] => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
const listening = (worker: Worker) => once(worker, 'listening').then(() => 'listening' as const);
const ended = (worker: Worker) => once(worker, 'exit').then(() => 'ended' as const);

/** SIGTERM lets each answer what it has. @returns their exit codes */
function endAll(all: Worker[]): Promise<number[]> {
  return Promise.all(
    all.map(async (worker) => {
      const exit = once(worker, 'exit') as Promise<[code: number | null, signal: string | null]>;
      worker.process.kill('SIGTERM');
      const [code, signal] = await exit;
      return code ?? (signal === 'SIGTERM' ? 0 : 1); // by the signal itself: it had not even started
    }),
  );
}

/** Starts a new process for each old one, and ends the old one only when the new one listens. */
async function replaceAll(logger: Logger, stopping: () => boolean): Promise<void> {
  for (const old of workers()) {
    if (stopping()) return;
    const fresh = cluster.fork();
    const outcome = await Promise.race([
      listening(fresh),
      ended(fresh),
      sleep(60_000, 'late' as const, { ref: false }),
    ]);
    if (stopping()) return;
    if (outcome !== 'listening') {
      logger.error({ outcome }, 'a new API process does not listen: the old ones stay');
      return;
    }
    old.exitedAfterDisconnect = true;
    await endAll([old]);
  }
  logger.info({}, 'all API processes are replaced');
}

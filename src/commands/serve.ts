/**
 * `flashgate serve`: one API process per core behind one port. The first process only starts the others, restarts one
 * that died, replaces them one by one on SIGHUP, and shows the metrics of all of them on one page. A single process has
 * nobody for that: SIGHUP stops it in order, for whoever starts it again.
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Logger } from 'pino';
import { readConfig, type Config } from '../config.ts';
import { buildMetricsApp } from '../http/metrics-app.ts';
import { createLogger } from '../wiring.ts';
import { MetricsPage, tellFirst } from './page.ts';
import { ApiProcesses } from './processes.ts';
import { tellMetrics } from './room.ts';
import { runUntilSignal, signalled, startApi } from './run.ts';

/** Without SIGHUP, which replaces. */
const STOPS: NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];
const RESTART_AFTER_MS = 1000;
const START_MS = 60_000;
/** What a process has, beyond its own deadline, to end by it. */
const LAST_MS = 2000;

export async function serveCommand(): Promise<number> {
  const config = readConfig(process.env);
  if (config.API_PROCESSES === 1) return runUntilSignal('serve', [startApi], config);
  if (cluster.isWorker) {
    process.on('SIGHUP', () => undefined); // a closed terminal's comes to all: the first process answers it for them
    // Only the first process has a metrics port.
    const own = { ...config, METRICS_PORT: undefined };
    const code = await runUntilSignal('serve', [startApi, tellFirst], own, STOPS);
    await takeLeave();
    return code;
  }
  return lead(config, createLogger(config));
}

/**
 * Ends the channel to the first process only when that one has answered: until then it may hand over a connection, which
 * is given back; what is handed to a process that is gone has nobody, and its client would wait for ever.
 */
async function takeLeave(): Promise<void> {
  const left = once(process, 'disconnect');
  cluster.worker?.disconnect();
  await left;
}

async function lead(config: Config, log: Logger): Promise<number> {
  const processes = new ApiProcesses({
    ...{ count: config.API_PROCESSES, log, restartAfterMs: RESTART_AFTER_MS, startMs: START_MS },
    killAfterMs: config.SHUTDOWN_DEADLINE_MS + LAST_MS,
  });
  const page = new MetricsPage();
  const metrics = () => page.text();
  const app = buildMetricsApp({ contentType: page.contentType, metrics, ready: () => processes.serving });
  tellMetrics(metrics);
  process.on('SIGHUP', () => processes.replaceAll());
  const start = async () => {
    const failed = await processes.start();
    if (failed !== undefined) return failed;
    if (config.METRICS_PORT !== undefined) await app.listen({ host: config.HOST, port: config.METRICS_PORT });
    log.info({ processes: config.API_PROCESSES }, 'all API processes listen; SIGHUP replaces them one by one');
    return undefined;
  };
  const signalCame = signalled(STOPS); // from here on, also while they start
  const failed = await Promise.race([start(), signalCame.then(() => undefined)]);
  if (failed !== undefined) return failed;
  const signal = await signalCame;
  log.info({ signal }, 'stopping all API processes');
  const codes = await processes.stop();
  await app.close();
  return Math.max(...codes, 0);
}

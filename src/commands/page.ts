/**
 * One page of metrics for all API processes, made by the first one, which asks each of the others.
 *
 * A count never falls: what a process had counted stays when it ends. Else every replacement would look to Prometheus as
 * if all counters had begun anew, and a rate over it would be of everything that the others ever counted. And one process
 * that is stuck does not take the page with it: it is shown as it was, and as late as it is.
 */
import cluster, { type Worker } from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { AggregatorRegistry } from 'prom-client';
import { LAG } from '../metrics.ts';
import type { Wired } from '../wiring.ts';
import type { Running } from './run.ts';

/** A metric as prom-client writes it as JSON; its declarations have the type as a number. */
type Metric = { name: string; type: unknown; aggregator: string; values: { value: number }[] };
type Question = { flashgate: 'counts?'; id: string };
/** `id` is that of the question; a process also tells unasked, when it begins and last of all. */
type Answer = { flashgate: 'counts'; id: string; metrics: Metric[] };

/** How long one that is asked may take; what a scrape costs at most. */
const ASK_MS = 2000;

const isQuestion = (message: unknown): message is Question =>
  message instanceof Object && 'flashgate' in message && message.flashgate === 'counts?';
const isAnswer = (message: unknown): message is Answer =>
  message instanceof Object && 'flashgate' in message && message.flashgate === 'counts';

/** In one of the others: tells what it has counted. */
export async function tellFirst({ registry, logger }: Pick<Wired, 'registry' | 'logger'>): Promise<Running> {
  const tell = async (id: string) => {
    const metrics = (await registry.getMetricsAsJSON()) as unknown as Metric[];
    if (process.connected) process.send?.({ flashgate: 'counts', id, metrics } satisfies Answer);
  };
  process.on('message', (message: unknown) => {
    if (!isQuestion(message)) return;
    tell(message.id).catch((err: unknown) => logger.warn({ err }, 'the metrics of this process cannot be read'));
  });
  await tell('');
  return { stop: () => tell('') };
}

/** In the first process. */
export class MetricsPage {
  readonly contentType = AggregatorRegistry.PROMETHEUS_CONTENT_TYPE;
  /** What each told last. */
  #told = new Map<Worker, Metric[]>();
  /** Counts of those that have ended. */
  #ended: Metric[][] = [];
  #adding: Promise<void> = Promise.resolve();

  constructor() {
    cluster.on('message', (worker: Worker, message: unknown) => {
      if (isAnswer(message)) this.#told.set(worker, message.metrics);
    });
    // Not at its exit: then its last words may still be on their way.
    cluster.on('disconnect', (worker) => this.#keepCounts(worker));
  }

  async text(): Promise<string> {
    const asked = [...this.#told.keys()].map((worker) => this.#ask(worker));
    const late = new Set((await Promise.all(asked)).filter((worker) => worker !== undefined));
    const shown = [...this.#told].map(([worker, metrics]) => (late.has(worker) ? metrics.map(asLate) : metrics));
    return AggregatorRegistry.aggregate([...shown, ...this.#ended]).metrics();
  }

  /** @returns the process if it is late */
  #ask(worker: Worker): Promise<Worker | undefined> {
    const id = randomUUID();
    return new Promise((resolve) => {
      const settle = (late?: Worker) => {
        clearTimeout(timer);
        worker.off('message', listen).off('disconnect', gone);
        resolve(late);
      };
      const listen = (message: unknown) => {
        if (isAnswer(message) && message.id === id) settle();
      };
      const gone = () => settle();
      const timer = setTimeout(() => settle(worker), ASK_MS);
      worker.on('message', listen).once('disconnect', gone);
      if (worker.isConnected()) worker.send({ flashgate: 'counts?', id } satisfies Question);
    });
  }

  #keepCounts(worker: Worker): void {
    const counts = this.#told.get(worker)?.filter(({ type }) => type === 'counter' || type === 'histogram');
    this.#told.delete(worker);
    if (!counts) return; // it had never served
    this.#ended.push(counts);
    this.#adding = this.#adding.then(async () => {
      const [one, two] = this.#ended;
      if (!one || !two) return;
      const both = await AggregatorRegistry.aggregate([one, two]).getMetricsAsJSON();
      this.#ended.splice(0, 2, both as unknown as Metric[]);
    });
  }
}

/** At least as late as it did not answer. */
function asLate(metric: Metric): Metric {
  if (!metric.name.startsWith(LAG)) return metric;
  return { ...metric, values: metric.values.map((each) => ({ ...each, value: Math.max(each.value, ASK_MS / 1000) })) };
}

/** Which metrics a process shows: those of Node.js, those of every process, and those of the parts that it runs. */
import { collectDefaultMetrics, Counter, type Metric, type Registry } from 'prom-client';
import { answers, latched } from './http/counts.ts';
import { meters } from './meter.ts';

export function registerMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  showTheWorst(registry);
  for (const metric of meters.all as Metric[]) registry.registerMetric(metric);
}

/** Gauges of the event loop's lag, in seconds, begin so. */
export const LAG = 'nodejs_eventloop_lag_';

/**
 * On the page of several processes prom-client shows the mean of their event loops' lags: of eight, one that is stuck
 * would be an eighth of what it is, and no alert would see it.
 */
function showTheWorst(registry: Registry): void {
  for (const metric of registry.getMetricsAsArray()) {
    if (metric.name.startsWith(LAG) && metric.aggregator === 'average') metric.aggregator = 'max';
  }
}

export function registerPart(registry: Registry, part: 'api' | 'worker' | 'keeper'): void {
  for (const metric of meters[part] as Metric[]) registry.registerMetric(metric);
  if (part === 'api') exposeAnswers(registry);
}

/** Counters that are kept elsewhere as plain numbers and read only when somebody asks. */
function exposeAnswers(registry: Registry): void {
  new Counter({
    name: 'flashgate_answers_total',
    help: 'Answers of the API by problem code, ok or dup',
    labelNames: ['code'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [code, number] of Object.entries(answers)) this.inc({ code }, number);
    },
  });
  new Counter({
    name: 'flashgate_latched_total',
    help: 'Refusals that the process knew by itself, without asking the gate',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(latched.count);
    },
  });
}

/** Metrics in Prometheus' words: seconds, totals, no buyer and no reservation in a label. */
import { collectDefaultMetrics, Counter, Histogram, type Registry } from 'prom-client';

export type Metrics = {
  /** One call of the gate's reserve script: how long it took and how many buyers it decided. */
  gateCall: (seconds: number, buyers: number) => void;
  /** From the moment a hold was won (the gate's clock) until its order is committed (this machine's clock). */
  recorded: (seconds: number) => void;
};

export function createMetrics(registry: Registry): Metrics {
  collectDefaultMetrics({ register: registry });
  const seconds = new Histogram({
    name: 'flashgate_gate_call_seconds',
    help: 'Duration of a call of the reserve script',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
    registers: [registry],
  });
  const buyers = new Histogram({
    name: 'flashgate_gate_call_buyers',
    help: 'Buyers decided by one call of the reserve script',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    registers: [registry],
  });
  const lag = new Histogram({
    name: 'flashgate_order_lag_seconds',
    help: 'From a hold at the gate to its order in the ledger',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  return {
    gateCall: (duration, size) => {
      seconds.observe(duration);
      buyers.observe(size);
    },
    recorded: (duration) => {
      lag.observe(Math.max(0, duration));
    },
  };
}

/** Counters that are kept elsewhere as plain numbers and read only when somebody asks. */
export function exposeAnswers(registry: Registry, answers: Record<string, number>, latched: { count: number }): void {
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

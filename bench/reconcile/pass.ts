/** One full pass by the keeper's own functions, in a process of its own as a keeper is; reports to its parent. */
import { readConfig } from '../../src/config.ts';
import { reconcileSteps, type Reconciled } from '../../src/keeper/reconcile.ts';
import { noToken } from '../../src/operations/stores.ts';
import { createLogger, keeperOptions, wire } from '../../src/wiring.ts';

export type PassReport = {
  done: Reconciled;
  ms: number;
  steps: number;
  longestStepMs: number;
  rssBeforeKiB: number;
  peakRssKiB: number;
};

const [saleId = ''] = process.argv.slice(2);
const config = readConfig({ ...process.env, LOG_LEVEL: 'warn' });
const wired = wire(config, createLogger(config));
await wired.connected();
const rssBeforeKiB = process.resourceUsage().maxRSS;
const { reconcile: options } = keeperOptions(config);
const steps = reconcileSteps({ stores: wired.stores, saleId, options, resentAt: new Map(), tokenOf: noToken });
const began = performance.now();
let [count, longestStepMs] = [0, 0];
for (;;) {
  const at = performance.now();
  const step = await steps.next();
  count += 1;
  longestStepMs = Math.max(longestStepMs, performance.now() - at);
  if (!step.done) continue;
  const report: PassReport = {
    ...{ done: step.value, ms: performance.now() - began, steps: count, longestStepMs, rssBeforeKiB },
    peakRssKiB: process.resourceUsage().maxRSS,
  };
  process.send?.(report);
  break;
}
await wired.close();
process.disconnect();

/** Runs bench/k6/rush.js as k6 would: setup, every buyer, teardown. Prints what came of it as JSON. */
import { state } from './k6-standins.ts';

type Script = {
  options: { scenarios: { rush: { iterations: number } } };
  setup: () => { saleId: string };
  default: (data: { saleId: string }) => void;
  teardown: (data: { saleId: string }) => void;
};

const file = '../../bench/k6/rush.js';
const script = (await import(file)) as Script;
const data = script.setup();
state.forced.push(...(JSON.parse(process.env['FORCED'] ?? '[]') as typeof state.forced));
const { iterations } = script.options.scenarios.rush;
for (state.iteration = 0; state.iteration < iterations; state.iteration += 1) script.default(data);
script.teardown(data);
const { calls, checks, counters, expected } = state;
console.log(JSON.stringify({ options: script.options, calls, checks, counters, expected }));

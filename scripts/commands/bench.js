// `npm run bench [-- --quick] [--only PART]`: the side-by-side measurements; rewrites bench/RESULTS.md and its charts.
import { parseArgs } from 'node:util';
import { SetupError } from '../lib/processes.js';
import { withSystem } from './system.js';

const USAGE = `usage: npm run bench -- [--quick] [--only PART]...
  --quick      small numbers, under two minutes: to see that all of it runs; RESULTS.md is left alone
  --only PART  one part (may be given several times)`;

/** @returns the exit code: 0 when everything could be measured, 64 for wrong usage */
export async function run(args, say) {
  const options = readOptions(args);
  if (typeof options === 'string') {
    say(options);
    return options === USAGE ? 0 : 64;
  }
  if (process.platform !== 'linux') throw new SetupError('The bench reads CPU time from /proc: it runs on Linux only.');
  const { bench, chosen } = await import('../../bench/main.ts');
  try {
    chosen(options.only);
  } catch (error) {
    say(`${error.message}\n${USAGE}`);
    return 64;
  }
  return withSystem({ name: 'bench', say }, (system) => bench(system, options, say));
}

function readOptions(args) {
  try {
    const { values } = parseArgs({
      args,
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        help: { type: 'boolean', default: false },
      },
    });
    return values.help ? USAGE : values;
  } catch (error) {
    return `${error.message}\n${USAGE}`;
  }
}

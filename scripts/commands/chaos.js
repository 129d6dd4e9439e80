// `npm run chaos [-- options]`: the whole system broken on purpose (chaos/command.ts). Ctrl-C ends everything in order.
import { chaosCommand } from '../../chaos/command.ts';
import { onEnd } from '../lib/processes.js';

/** @returns the exit code: 0 only if every check holds */
export async function run(args, say) {
  const ending = new AbortController();
  onEnd(() => ending.abort());
  return await chaosCommand(args, say, ending.signal);
}

// `npm run chaos [-- options]`: the whole system broken on purpose (chaos/command.ts). Ctrl-C ends everything in order.
import { chaosCommand } from '../../chaos/command.ts';
import { onEnd } from '../lib/processes.js';

/** @returns the exit code: 0 only if every check holds */
export function run(args, say) {
  return chaosCommand(args, say, onEnd);
}

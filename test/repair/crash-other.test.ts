/** Worker, keeper and commands killed at each of their crash points; then started again, and repaired. */
import { describe, test } from 'vitest';
import { commandFlows, keepFlows, workFlows } from './flows-other.ts';
import { play } from './scene.ts';

describe.each([
  ['the worker', workFlows],
  ['the keeper', keepFlows],
  ['a command', commandFlows],
])('%s', (_, flows) => {
  test.each(flows)('$point: $doing', { timeout: 60_000 }, play);
});

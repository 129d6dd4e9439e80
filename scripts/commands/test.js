// `npm test [-- vitest's arguments]`: every test, on servers that the tests' own set-up starts (test/support/global.ts).
import { join } from 'node:path';
import { ROOT, RUNTIME, STATE } from '../lib/folders.js';
import { runInForeground } from '../lib/processes.js';

// The tests start the command hundreds of times: compiled once, each start takes half as long.
const env = { ...process.env, NODE_COMPILE_CACHE: join(STATE, 'compile-cache') };

/** @returns vitest's exit code */
export function run(args) {
  return runInForeground(RUNTIME, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', ...args], { cwd: ROOT, env });
}

import { join } from 'node:path';

const { PATH = '', NODE_COMPILE_CACHE } = process.env;

/**
 * What a program that a test starts has in its environment besides its settings: nothing that could be one. Compiled code
 * has a folder of its own, since the tests' process has other flags of V8, and either would throw the other's away.
 */
export const runtime: NodeJS.ProcessEnv = {
  PATH,
  ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: join(NODE_COMPILE_CACHE, 'programs') }),
};

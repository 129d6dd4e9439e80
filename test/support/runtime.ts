const { PATH = '', NODE_COMPILE_CACHE } = process.env;

/** What a program that a test starts has in its environment besides its settings: nothing that could be one. */
export const runtime: NodeJS.ProcessEnv = { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) };

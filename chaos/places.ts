/** Where the chaos run finds things. */
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..');
/** The product's entry, below the folder of whichever copy of it is run. */
export const MAIN_PART = join('src', 'main.ts');
/** The Node.js that package.json pins. */
export const RUNTIME = join(ROOT, 'node_modules', 'node', 'bin', 'node');
/** What runs leave behind: pictures, and the logs of runs that failed. */
export const OUT = join(ROOT, '.flashgate', 'chaos');

// Where things are: the clone, its state folder .flashgate/ (ignored by git) and the pinned runtime.
// Node.js built-ins only: this runs before anything is installed.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const STATE = join(ROOT, '.flashgate');

/** Folders of runs, one per supervisor, removed when the run ends. */
export const RUNS = join(STATE, 'run');

/** What `npm start` keeps from one start to the next. */
export const KEPT = join(STATE, 'start');

/** The Node.js that package.json pins; it runs TypeScript directly, which the system's may not. */
export const RUNTIME = join(ROOT, 'node_modules', 'node', 'bin', 'node');
export const MAIN = join(ROOT, 'src', 'main.ts');

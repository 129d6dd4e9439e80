/** The API killed at each of its crash points, in each request that passes it; then started again, and repaired. */
import { test } from 'vitest';
import { serveFlows } from './flows-serve.ts';
import { play } from './scene.ts';

test.each(serveFlows)('$point: $doing', { timeout: 60_000 }, play);

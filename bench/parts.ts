/** The parts of the bench, in the order in which they run. */
import type { Part } from './bench.ts';
import { refusal } from './parts/refusal.ts';

export const PARTS: Part[] = [{ name: 'refusal', run: refusal }];

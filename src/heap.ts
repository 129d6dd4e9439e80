/** How V8 is to treat the heap of every process of flashgate. */
import v8 from 'node:v8';

/**
 * Switches allocation-site pretenuring off. By that V8 may conclude, from what a place in the code (one of Node.js' own, too)
 * made while program and connections started, that what it makes lives long, and puts it where only a full collection
 * looks. A request has such parts; dead, each keeps the whole request until then, and every minor collection moves them
 * all, for many times as long. Chance decides whether a process is so; ARCHITECTURE.md has figures.
 *
 * Call it before the code that is meant is loaded. The flag is V8's (`node --v8-options`).
 */
export function keepShortLivedYoung(): void {
  v8.setFlagsFromString('--no-allocation-site-pretenuring');
}

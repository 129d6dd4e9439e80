/**
 * Loaded into a process (`--import`): on SIGUSR2 says on standard error how many of some new arrays began their life in
 * the old part of its heap, when those that the same place in the code had made before lived long.
 */
import v8 from 'node:v8';
import { compileFunction } from 'node:vm';

/** Whether V8 notices depends on when it collects and compiles: one of many tries is enough. */
const TRIES = 40;
const LONG_LIVED = 400_000;
const NEW = 100;

v8.setFlagsFromString('--allow-natives-syntax');
const isYoung = compileFunction('return %InYoungGeneration(it)', ['it']) as (it: object) => boolean;

function bornOld(): number {
  const make = compileFunction('return [n, n]', ['n']) as (n: number) => number[]; // of which V8 knows nothing yet
  const kept: number[][] = [];
  for (let n = 0; n < LONG_LIVED; n += 1) kept.push(make(n));
  return Array.from({ length: NEW }, (_, n) => make(n)).filter((it) => !isYoung(it)).length;
}

process.on('SIGUSR2', () => {
  console.error(`born old: ${Math.max(...Array.from({ length: TRIES }, bornOld))}`);
});

/** On what a rush was run. */
import { availableParallelism, cpus, release, totalmem, type as system } from 'node:os';
import { readFileSync } from 'node:fs';

/** @returns what, value */
export function machine(): Record<string, string> {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return {
    flashgate: manifest.version,
    'Node.js': process.version,
    processor: `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${system()} ${release()}`,
  };
}

/** The list of crash points is what the code passes, and every one of them is died at. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { crashPoints } from '../../src/crash.ts';
import { commandFlows, keepFlows, workFlows } from './flows-other.ts';
import { serveFlows } from './flows-serve.ts';

const SRC = join(import.meta.dirname, '../../src');

/** Where each point is passed: point to files. */
function passed(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    for (const [, name = ''] of readFileSync(join(SRC, file), 'utf8').matchAll(/\bcrashPoint\('(\w+)'\)/g)) {
      found.set(name, [...(found.get(name) ?? []), file]);
    }
  }
  return found;
}

test('the list has exactly the points that the code passes', () => {
  expect([...passed().keys()].sort()).toEqual([...crashPoints].sort());
});

test('no point is named in a way that the comparison would overlook', () => {
  for (const file of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts') || file === 'crash.ts') continue;
    const source = readFileSync(join(SRC, file), 'utf8');
    const calls = source.match(/\bcrashPoint\(/g)?.length ?? 0;
    expect(source.match(/\bcrashPoint\('\w+'\)/g)?.length ?? 0, file).toBe(calls);
  }
});

test('every point is died at by a flow, and none that is not in the list', () => {
  const died = [...serveFlows, ...workFlows, ...keepFlows, ...commandFlows].map(({ point }) => point);
  expect([...new Set(died)].sort()).toEqual([...crashPoints].sort());
});

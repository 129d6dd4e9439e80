/** The command's arguments, the defects that prove it, and the picture: all that needs no servers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaosCommand } from '../../chaos/command.ts';
import { DEFECTS } from '../../chaos/defects/defects.ts';
import { PREFERENCES } from '../../chaos/preferences.ts';
import { drawTimeline } from '../../chaos/timeline.ts';

const ROOT = join(import.meta.dirname, '../..');

test.each([
  [['--seed', 'seven']],
  [['--seed', '-1']],
  [['--minutes', '']],
  [['--gate', 'sometimes']],
  [['--prefer', 'nothing-like-it']],
  [['--unknown']],
  [['more']],
])('%j is refused, and nothing is started', async (args) => {
  const said: string[] = [];
  expect(
    await chaosCommand(
      args,
      (line) => said.push(line),
      () => undefined,
    ),
  ).toBe(64);
  expect(said).toEqual([]);
});

test('--help is no error', async () => {
  expect(
    await chaosCommand(
      ['--help'],
      () => undefined,
      () => undefined,
    ),
  ).toBe(0);
});

describe.each(DEFECTS)('the defect $name', ({ file, original, replaced, preference, foundBy, seeds }) => {
  test('stands in the product exactly once, as the rule that it breaks', () => {
    expect(readFileSync(join(ROOT, file), 'utf8').split(original)).toHaveLength(2);
    expect(replaced).not.toContain(original);
  });

  test('is found by checks that exist, within a stated number of seeds', () => {
    expect(PREFERENCES).toHaveProperty(preference);
    expect(seeds).toBeGreaterThan(0);
    const verdict = readFileSync(join(ROOT, 'chaos/verdict.ts'), 'utf8');
    expect(foundBy.length).toBeGreaterThan(0);
    for (const name of foundBy) expect(verdict).toMatch(new RegExp(`check\\(\\s*'${name}'`));
  });
});

test('the picture has a bar for each fault and a column for each second, and no word breaks it', () => {
  const startedAt = Date.now();
  const fault = { n: 1, kind: 'kill-api', atMs: 0, forMs: 1000, target: 'api-1', how: 'a <b> & c' } as const;
  const svg = drawTimeline({
    title: 'chaos',
    startedAt,
    struck: [
      { ...fault, startedAt, endedAt: startedAt + 1000 },
      { ...fault, n: 2, target: 'redis', startedAt: startedAt + 500, endedAt: startedAt + 900 },
    ],
    answers: [
      new Map([['ok', 3]]),
      new Map([
        ['sold_out', 5],
        ['never heard of', 1],
      ]),
    ],
  });
  expect(svg.startsWith('<svg ')).toBe(true);
  expect(svg.match(/<title>/g)).toHaveLength(2);
  expect(svg).toContain('a &lt;b> &amp; c');
  expect(svg).toContain('(top: 6)');
});

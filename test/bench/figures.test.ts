/** What turns rounds into figures, and figures into documents. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { draw } from '../../bench/lib/chart.ts';
import { insert, quoted } from '../../bench/lib/insert.ts';
import { table } from '../../bench/lib/markdown.ts';
import { QUOTING } from '../../bench/lib/results.ts';
import { digits, median, quantile, spread, withSpread } from '../../bench/lib/stats.ts';
import { chosen } from '../../bench/main.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('stats', () => {
  test('quantile: the nearest rank, whatever the order', () => {
    const values = [5, 1, 4, 2, 3];
    expect([0, 0.2, 0.5, 0.99, 1].map((share) => quantile(values, share))).toEqual([1, 1, 3, 5, 5]);
    expect(() => quantile([], 0.5)).toThrow('no value was measured');
  });

  test('median and spread', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(spread([90, 100, 110])).toBeCloseTo(0.1);
    expect(withSpread([90, 100, 110])).toBe('100 ±10 %');
    expect(withSpread([100])).toBe('100'); // of one there is no spread
    expect(() => median([])).toThrow('no value was measured');
  });

  test.each([
    [12_345, '12,300'],
    [45.61, '45.6'],
    [0.012345, '0.0123'],
    [0, '0'],
    [Number.NaN, '–'],
  ])('%d is read as %s', (value, text) => {
    expect(digits(value)).toBe(text);
  });
});

test('a table', () => {
  expect(table(['a', 'b'], ['1', '2'])).toEqual(['', '| a | b |', '| --- | ---: |', '| 1 | 2 |', '']);
});

test('a chart is whole XML, whatever the names are, and as long as its values', () => {
  const svg = draw({
    file: 'x.svg',
    title: 'a & b',
    bars: [
      { name: '<none>', value: 0 },
      { name: 'all', value: 10 },
    ],
  });
  expect(svg).toContain('a &#38; b');
  expect(svg).not.toContain('<none>');
  const widths = [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
  expect(widths[0]).toBeLessThan(widths[1] ?? 0);
});

describe('figures in documents', () => {
  test('are replaced each time, and nothing else is', () => {
    const document = 'a <!-- bench x -->–<!-- /bench --> b <!-- bench y -->\n| t |\n<!-- /bench --> c';
    const once = insert(document, { x: '1', y: '2', z: '3' });
    expect(once).toBe('a <!-- bench x -->1<!-- /bench --> b <!-- bench y -->2<!-- /bench --> c');
    expect(insert(once, { x: '$1', y: '4' })).toContain('<!-- bench x -->$1<!-- /bench -->');
  });

  test('one that was not measured is an error, not the last run’s', () => {
    expect(() => insert('<!-- bench x -->1<!-- /bench -->', {})).toThrow('quotes x');
  });

  test.each(QUOTING)('all that %s quotes is measured by some part', (file) => {
    const parts = join(ROOT, 'bench/parts');
    const source = readdirSync(parts)
      .map((name) => readFileSync(join(parts, name), 'utf8'))
      .join('\n');
    const names = quoted(readFileSync(join(ROOT, file), 'utf8'));
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !source.includes(`'${name}':`))).toEqual([]);
  });

  test('no other document quotes any', () => {
    const documents = ['.', 'docs', 'bench'].flatMap((folder) =>
      readdirSync(join(ROOT, folder)).map((name) => join(folder, name)),
    );
    const quoting = documents.filter(
      (path) => path.endsWith('.md') && quoted(readFileSync(join(ROOT, path), 'utf8')).length > 0,
    );
    expect(quoting.sort()).toEqual([...QUOTING].sort());
  });
});

test('parts are chosen by name; an unknown one is named, with those that exist', () => {
  expect(chosen([]).length).toBeGreaterThan(5);
  expect(chosen(['gate', 'refusal']).map(({ name }) => name)).toEqual(['refusal', 'gate']);
  expect(() => chosen(['nothing'])).toThrow(/no part nothing.*refusal/s);
});

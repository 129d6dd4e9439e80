/** The report as a page: one good HTML file that asks for nothing, says what the tally has, and takes no word for markup. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, type DefaultTreeAdapterMap } from 'parse5';
import { expect, test } from 'vitest';
import type { AuditReport } from '../../src/audit/report.ts';
import { parseRushOptions } from '../../src/rush/options.ts';
import { renderPage } from '../../src/rush/page.ts';
import { makeReport, type RushReport } from '../../src/rush/report.ts';
import { Tally } from '../../src/rush/tally.ts';

type Node = DefaultTreeAdapterMap['node'];
type Element = DefaultTreeAdapterMap['element'];
const HOSTILE = `<script>alert("x")</script> & '`;

const audit: AuditReport = {
  ...{ verdict: 'broken', at: '2026-11-30T00:00:00.000Z', sales: [] },
  checks: [
    { name: 'units_add_up', saleId: 'rush-1', looked: 100, broken: 0, examples: [] },
    { name: 'nobody_twice', looked: 3, broken: 1, examples: [{ subject: HOSTILE, found: 'twice' }] },
  ],
  unjudged: [{ what: 'the gate', why: HOSTILE }],
};

function reportOf(tally: Tally, changes: Partial<RushReport> = {}): RushReport {
  const settings = parseRushOptions({ providerUrl: 'http://127.0.0.1:9', seed: 77 }, {});
  const course = {
    ...{ startedAt: new Date('2026-11-30T01:02:03Z'), saleId: 'rush-1', units: 100, settings, tally },
    ...{ inRush: tally.answered, seconds: 2, over: tally.course(), winners: 1 },
  };
  const evidence = {
    ...{ heard: [], unexpected: [], troubles: [], orders: new Map(), before: new Set<string>() },
    ...{ payments: [], quantity: 1, sale: { gate: null, ledger: { total: 100, sold: 0 } } },
  };
  const checks = [{ name: 'money', claim: `claim ${HOSTILE}`, examined: 5, failures: [] }];
  return { ...makeReport(course, evidence, checks, audit), ...changes };
}

/** Answers of three kinds, in three steps of time, one of them with a name that somebody else gave it. */
async function rushed(): Promise<Tally> {
  const tally = new Tally(20);
  tally.start();
  for (let step = 0; step < 3; step += 1) {
    for (let n = 0; n < 40; n += 1) tally.add({ is: 'refused', kind: 'sold_out' }, 5 + n, 1);
    tally.add({ is: 'unexpected', kind: `HTTP 500 ${HOSTILE}`, words: HOSTILE }, 50, 1);
    const before = tally.course().buckets.length;
    await sleep(25); // the next step
    tally.add({ is: 'unknown', kind: 'timeout' }, 1000, 1);
    expect(tally.course().buckets.length).toBeGreaterThan(before);
  }
  return tally;
}

function all(node: Node): Element[] {
  const children = 'childNodes' in node ? node.childNodes : [];
  return [...('tagName' in node ? [node] : []), ...children.flatMap(all)];
}
const textOf = (node: Node): string =>
  'value' in node ? node.value : 'childNodes' in node ? node.childNodes.map(textOf).join('') : '';
function read(page: string) {
  const errors: string[] = [];
  const document = parse(page, { onParseError: ({ code }) => errors.push(code) });
  const elements = all(document);
  const rows = elements
    .filter(({ tagName }) => tagName === 'tr')
    .map(({ childNodes }) => childNodes.filter((node) => 'tagName' in node).map(textOf));
  return { errors, elements, rows, text: textOf(document) };
}

test('over time it has what the tally counted: no answer more, none less', async () => {
  const tally = await rushed();
  const { buckets } = tally.course();
  const counted: Record<string, number> = {};
  for (const { counts } of buckets) {
    for (const [kind, count] of Object.entries(counts)) counted[kind] = (counted[kind] ?? 0) + count;
  }
  expect(counted).toEqual(Object.fromEntries(tally.lines().map(({ kind, count }) => [kind, count])));
  expect(tally.answered).toBe(126);
  for (const { counts, times } of buckets) expect(times === null).toBe(Object.keys(counts).length === 0);
  const slow = buckets.filter(({ counts }) => counts['timeout'] !== undefined);
  expect(slow.every(({ times }) => times?.max === 1000)).toBe(true);
});

test('is good HTML, says the figures, and draws a bar for each kind in each step', async () => {
  const tally = await rushed();
  const { errors, rows, elements, text } = read(renderPage(reportOf(tally)));
  expect(errors).toEqual([]);
  for (const { kind, is, count, p50, p99, max } of tally.lines()) {
    const name = is === 'unexpected' ? `! ${kind}` : kind;
    expect(rows).toContainEqual([name, String(count), ...[p50, p99, max].map(String)]);
  }
  expect(rows).toContainEqual(['units_add_up', '100', 'holds']);
  expect(rows).toContainEqual(['nobody_twice', '3', 'BROKEN 1×']);
  expect(rows).toContainEqual(['--seed', '77']);
  expect(rows).toContainEqual(['Node.js', process.version]);
  expect(text).toContain('1 of 1 comparisons hold, audit: broken');
  expect(text).toContain('2026-11-30 01:02:03 UTC');
  const bars = elements.filter(({ tagName }) => tagName === 'rect').length;
  expect(bars).toBe(tally.course().buckets.reduce((sum, { counts }) => sum + Object.keys(counts).length, 0));
  const lines = elements.filter(({ tagName }) => tagName === 'polyline');
  const heard = tally.course().buckets.filter(({ times }) => times !== null).length;
  const points = lines.map(({ attrs }) => attrs.find(({ name }) => name === 'points')?.value.split(' ').length);
  expect(points).toEqual([heard, heard]);
});

test('takes nobody’s words for markup, and asks for nothing from anywhere', async () => {
  const page = renderPage(reportOf(await rushed(), { saleId: HOSTILE }));
  const { elements, text } = read(page);
  const names = new Set(elements.map(({ tagName }) => tagName));
  for (const none of ['script', 'link', 'img', 'iframe', 'object', 'a', 'form']) expect(names).not.toContain(none);
  const attributes = elements.flatMap(({ attrs }) => attrs.map(({ name }) => name));
  expect(attributes.filter((name) => /^(on|src|href|action|xlink)/.test(name))).toEqual([]);
  expect(page).not.toMatch(/@import|url\(/);
  expect(page).toContain(`http-equiv="Content-Security-Policy" content="default-src 'none'`);
  expect(text.split(HOSTILE).length).toBeGreaterThan(5);
});

test('a rush without an answer, or without an audit, is a page too', () => {
  const { errors, text } = read(renderPage(reportOf(new Tally(50), { audit: null })));
  expect(errors).toEqual([]);
  expect(text).toContain('the audit was left out');
});

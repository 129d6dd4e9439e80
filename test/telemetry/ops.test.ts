/** Dashboard, alert rules and documents against the metrics that a real process shows: names, labels, values, help. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../scripts/servers/index.js';
import { OrderStatus } from '../../src/domain/reservation.ts';
import { figuresFrom, registerFigures } from '../../src/figures.ts';
import { problems } from '../../src/http/problem.ts';
import { registerMetrics, registerPart } from '../../src/metrics.ts';
import { codeIn, docAt, ROOT, tableOf } from '../docs/documents.ts';
import { settings } from '../http/api.ts';
import { openHouse, until, type House } from '../ledger/house.ts';
import { said, start, type Program } from '../process/program.ts';

type Rule = { alert: string; expr: string; labels: Record<string, string>; annotations: Record<string, string> };
type Panel = { title: string; targets?: { expr: string }[] };

const operations = docAt('docs/operations.md');
const { groups } = parse(readFileSync(join(ROOT, 'ops/alerts.yaml'), 'utf8')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(readFileSync(join(ROOT, 'ops/grafana-dashboard.json'), 'utf8')) as { panels: Panel[] };
const expressions = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: title, expr }))),
];

let house: House;
/** Labels by metric, of every part of the program. */
let labels: Map<string, string[]>;
let program: Program;
/** What a process that runs every part shows: its types and its help, by metric. */
let shown: { types: Map<string, string>; helps: Map<string, string> };

beforeAll(async () => {
  house = await openHouse();
  const registry = new Registry();
  registerMetrics(registry);
  for (const part of ['api', 'worker', 'keeper'] as const) registerPart(registry, part);
  registerFigures(registry, figuresFrom(house.wired, house.config));
  const metrics = registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[];
  labels = new Map(metrics.map(({ name, labelNames }) => [name, labelNames]));

  const [PORT, METRICS_PORT] = [String(await freePort()), String(await freePort())];
  program = start(['up'], { ...settings, ...house.settings, PORT, METRICS_PORT });
  await said(program, /"address":"([^"]+)"/);
  const ready = () =>
    fetch(`http://127.0.0.1:${METRICS_PORT}/readyz`).then(
      ({ ok }) => ok,
      () => false, // not yet: until() says so when it stays away
    );
  await until(ready, 40_000); // all parts have started
  const page = await (await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).text();
  const lines = (kind: string) =>
    new Map(
      [...page.matchAll(new RegExp(`^# ${kind} (\\S+) (.+)$`, 'gm'))].map(([, name = '', rest = '']) => [name, rest]),
    );
  shown = { types: lines('TYPE'), helps: lines('HELP') };
});
afterAll(async () => {
  program.kill('SIGTERM');
  expect((await program.ended).code).toBe(0);
  await house.close();
});

type Used = { metrics: string[]; labels: string[]; matched: { label: string; value: string }[]; errors: number };

/** What an expression names. */
function used(expr: string): Used {
  const found: Used = { metrics: [], labels: [], matched: [], errors: 0 };
  const plain = expr.replaceAll('$__rate_interval', '5m');
  parser.parse(plain).iterate({
    enter: ({ type, from, to, node }) => {
      const text = plain.slice(from, to);
      if (type.isError) found.errors += 1;
      if (type.name === 'Identifier' && node.parent?.name === 'VectorSelector') found.metrics.push(text);
      if (type.name === 'LabelName') found.labels.push(text);
      if (type.name === 'UnquotedLabelMatcher') {
        const [, label = '', value = ''] = /^(\w+)\s*[=!~]+\s*"(.*)"$/.exec(text) ?? [];
        found.matched.push({ label, value });
      }
    },
  });
  return found;
}

/** A histogram is shown as three. */
function metricOf(name: string): string | undefined {
  if (shown.types.has(name)) return name;
  const [, base = ''] = /^(.+)_(?:bucket|sum|count)$/.exec(name) ?? [];
  return shown.types.get(base) === 'histogram' ? base : undefined;
}

const OF_PROMETHEUS = ['job', 'instance', 'le'];
const VALUES: Record<string, readonly string[]> = {
  code: [...Object.keys(problems), 'ok', 'dup'],
  status: [...OrderStatus.options, 'PENDING', 'SUBMITTED', 'FAILED'],
  state: ['waiting', 'in_flight', 'dead'],
  side: ['gate', 'ledger'],
  kind: ['total', 'stock', 'held', 'forfeited', 'sold'],
};

test('the parser sees what an expression names, and what is none', () => {
  expect(used('sum by (code) (rate(a_total{status="x"}[5m])) / on () b')).toEqual({
    ...{ metrics: ['a_total', 'b'], labels: ['code', 'status'], errors: 0 },
    matched: [{ label: 'status', value: 'x' }],
  });
  expect(used('sum(rate(a_total[5m])').errors).toBeGreaterThan(0);
});

describe.each(expressions)('$where: $expr', ({ expr }) => {
  test('parses, and names metrics, labels and values that exist', () => {
    const { metrics, labels: names, matched, errors } = used(expr);
    expect(errors).toBe(0);
    expect(metrics.length).toBeGreaterThan(0);
    const bases = metrics.map((name) => [name, metricOf(name)] as const);
    expect(bases.filter(([, base]) => base === undefined)).toEqual([]);
    const known = new Set([...OF_PROMETHEUS, ...bases.flatMap(([, base]) => labels.get(base ?? '') ?? [])]);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
    const values = matched.flatMap(({ label, value }) => value.split('|').map((each) => ({ label, value: each })));
    expect(values.filter(({ label, value }) => !(VALUES[label] ?? [value]).includes(value))).toEqual([]);
  });
});

test('a process with every part shows every metric, each with its help', () => {
  expect([...shown.types.keys()].toSorted()).toEqual([...labels.keys()].toSorted());
  for (const name of shown.types.keys()) expect(shown.helps.get(name)?.length, name).toBeGreaterThan(10);
});

test('docs/operations.md lists every metric of flashgate with its labels, and no other', () => {
  const rows = tableOf(operations, 'metric', 'labels', 'shown by');
  const listed = rows.map(([name = '', names = '']) => [codeIn(name)[0], codeIn(names).toSorted()]);
  const real = [...labels].filter(([name]) => name.startsWith('flashgate_'));
  expect(listed.toSorted()).toEqual(real.map(([name, names]) => [name, names.toSorted()]).toSorted());
});

test('every alert says what it is, how bad it is, and where its section is', () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  const sections = [...operations.text.matchAll(/^### (Flashgate\w+)$/gm)].map(([, title]) => title);
  expect(sections.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  for (const { alert, labels: of, annotations } of rules) {
    expect(['critical', 'warning'], alert).toContain(of['severity']);
    expect(annotations['summary']?.length, alert).toBeGreaterThan(10);
    expect(annotations['runbook_url']).toBe(`docs/operations.md#${alert.toLowerCase()}`);
  }
});

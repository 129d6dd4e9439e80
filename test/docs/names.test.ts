/** What documents name exists: settings, paths, links, npm scripts, problem codes, log messages, checks, crash points. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { auditSettings } from '../../src/audit/command.ts';
import { settingNames } from '../../src/config.ts';
import { crashPoints } from '../../src/crash.ts';
import { problems } from '../../src/http/problem.ts';
import { codeIn, docAt, docs, read, readDoc, ROOT, sourceText, tableOf } from './documents.ts';

type Package = { scripts: Record<string, string>; dependencies: Record<string, string> };
const manifest = JSON.parse(read('package.json')) as Package;
const source = sourceText();
/** Documents also tell of what was measured and tested. */
const allSource = sourceText('bench', 'chaos', 'test');
const settings = new Set([...settingNames, ...Object.keys(auditSettings)]);
const readme = docAt('README.md');
const architecture = docAt('ARCHITECTURE.md');

describe.each(docs)('$path', ({ path, text, blocks, spans }) => {
  const lines = blocks.flatMap((block) => block.lines);

  test('names in capitals are settings, or words of the source', () => {
    const names = [...spans, ...lines].flatMap((code) => code.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? []);
    const known = (name: string) =>
      settings.has(name) || allSource.includes(name) || read('docker-compose.yml').includes(name);
    expect([...new Set(names)].filter((name) => !known(name))).toEqual([]);
  });

  test('other names in inline code are words of the source', () => {
    const names = spans.filter((span) => /^[a-z]+(_[a-z0-9]+)+$|^[a-z]+([A-Z][a-z]+)+$/.test(span));
    expect([...new Set(names)].filter((name) => !new RegExp(`\\b${name}\\b`).test(allSource))).toEqual([]);
  });

  test('paths exist', () => {
    const paths = spans.filter((span) =>
      /^(src|lua|migrations|scripts|test|docs|bin|bench|chaos|\.ci)\/\S*$/.test(span),
    );
    const files = spans.filter((span) => /^[\w.-]+\.(md|json|js|ts|sql|yml|example)$/.test(span));
    expect([...paths, ...files].filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
  });

  test('links lead somewhere', () => {
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const broken = links.filter((link) => !/^https?:/.test(link) && !leadsSomewhere(path, link));
    expect(broken).toEqual([]);
  });

  test('npm scripts exist', () => {
    const used = [...spans, ...lines].flatMap((code) => [
      ...[...code.matchAll(/\bnpm run (\w+)/g)].map(([, name = '']) => name),
      ...[...code.matchAll(/\bnpm (test|start)\b/g)].map(([, name = '']) => name),
    ]);
    expect(used.filter((name) => !Object.hasOwn(manifest.scripts, name))).toEqual([]);
  });
});

function leadsSomewhere(from: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const target = file === '' ? from : join(dirname(from), file);
  if (!existsSync(join(ROOT, target))) return false;
  if (anchor === undefined) return true;
  const headings = [...readDoc(target).text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  return headings.some(
    (title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, '')
        .replaceAll(' ', '-') === anchor,
  );
}

test('README leads to every document', () => {
  const unknown = docs.filter(({ path }) => path !== 'README.md' && !readme.text.includes(`](${path})`));
  expect(unknown.map(({ path }) => path)).toEqual([]);
});

test('the table of settings has each of them, and no other', () => {
  const named = tableOf(readme, 'group', 'settings').flatMap(([, cell = '']) => codeIn(cell));
  const up = ['up']; // the command that uses one of them
  expect(named.filter((name) => !up.includes(name)).sort()).toEqual([...settings].sort());
});

test('the table of answers has each problem code with its status', () => {
  const rows = tableOf(readme, 'code', 'HTTP', 'do').filter(([codes = '']) => !codes.startsWith('('));
  const told = rows.flatMap(([codes = '']) => codeIn(codes));
  expect(told.toSorted()).toEqual(Object.keys(problems).sort());
  for (const [codes = '', statuses = ''] of rows) {
    const real = codeIn(codes).map((code) => String(problems[code as keyof typeof problems][0]));
    expect(statuses.split(', ').sort(), codes).toEqual([...new Set(real)].sort());
  }
});

test('the log messages that operations.md explains are those of the source', () => {
  const words = tableOf(docAt('docs/operations.md'), 'message', 'means', 'do').flatMap(([cell = '']) => codeIn(cell));
  expect(words.length).toBeGreaterThan(20);
  expect(words.filter((message) => !source.includes(message))).toEqual([]);
});

test('each error and warning of the processes is explained in operations.md', () => {
  const rows = tableOf(docAt('docs/operations.md'), 'message', 'means', 'do');
  const explained = rows.flatMap(([cell = '', , todo = '']) => codeIn(cell + todo));
  const calls = source.matchAll(/\blog(?:ger)?\.(?:warn|error|fatal)\(\s*\{[^}]*\},\s*['`]([^'`]{12,})['`]/g);
  const unexplained = [...calls]
    .map(([, message = '']) => message)
    .filter((message) => {
      return !explained.some((part) => message.includes(part)) && !FROM_THE_STAND_IN.has(message);
    });
  expect(unexplained).toEqual([]);
});

/** Warnings of the stand-in payment provider, which is not run in production; those of leases that end by themselves. */
const FROM_THE_STAND_IN = new Set([
  'webhook given up',
  'the provider failed',
  'a lease could not be given back: it ends by itself',
  'Redis could not be told that this keeper leaves: it notices by itself',
]);

test('ARCHITECTURE.md says of each crash point who repairs it', () => {
  const rows = tableOf(architecture, 'where it stops', 'crash point');
  const told = rows.flatMap(([, points = '']) => codeIn(points));
  expect(told.toSorted()).toEqual([...crashPoints].sort());
});

test('ARCHITECTURE.md says of each dependency why it is there', () => {
  const told = tableOf(architecture, 'package', 'considered instead').flatMap(([names = '']) => codeIn(names));
  expect(told.toSorted()).toEqual(Object.keys(manifest.dependencies).sort());
});

/** Writes bench/RESULTS.md and its charts, and puts the figures into the documents that quote them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import type { Bench, Section } from '../bench.ts';
import { draw } from './chart.ts';
import { insert } from './insert.ts';
import { machine } from './machine.ts';
import { table } from './markdown.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The documents that quote figures. */
export const QUOTING = ['README.md', 'docs/operations.md', 'docs/scale.md', 'docs/when-not.md'];

/** `seconds` it took; `only` these parts, if any are named. */
type Run = { seconds: number; quick: boolean; only: string[] };

/** What is written of the bench itself: its sizes and stores. */
type Of = Pick<Bench, 'sizes' | 'env' | 'redis' | 'pool'>;

/**
 * A whole run rewrites RESULTS.md, the charts and the documents; a quick or partial one is written to the state folder
 * only, so that it cannot be taken for the real thing.
 * @param root the repository's folder
 * @returns where the results are
 * @throws {Error} when a document quotes a figure that was not measured
 */
export async function write(bench: Of, sections: Section[], run: Run, root = ROOT): Promise<string> {
  const whole = !run.quick && run.only.length === 0;
  const folder = join(root, whole ? 'bench' : '.flashgate/bench');
  const text = await document(bench, sections, run); // before anything is written: it says whether the tree was clean
  mkdirSync(join(folder, 'charts'), { recursive: true });
  for (const chart of sections.flatMap(({ charts = [] }) => charts)) {
    writeFileSync(join(folder, 'charts', chart.file), draw(chart));
  }
  const path = join(folder, 'RESULTS.md');
  await writeMarkdown(path, text);
  if (whole) {
    const figures = Object.assign({}, ...sections.map((section) => section.figures ?? {})) as Record<string, string>;
    for (const name of QUOTING) {
      const quoting = join(root, name);
      await writeMarkdown(quoting, insert(readFileSync(quoting, 'utf8'), figures));
    }
  }
  return path;
}

/** As `npm run check` wants it. */
async function writeMarkdown(path: string, text: string): Promise<void> {
  writeFileSync(path, await format(text, { ...(await resolveConfig(path)), parser: 'markdown' }));
}

async function document(bench: Of, sections: Section[], { seconds, quick, only }: Run): Promise<string> {
  const goals = sections.flatMap((section) => section.goals ?? []);
  const kind = quick ? 'A quick run with small numbers: it shows that the bench runs, not how fast anything is.' : '';
  const lines = [
    '# Results',
    '',
    'Written by `npm run bench`; [README.md](README.md) says how it measures. CPU time per request is the figure to trust: rates and latencies of one machine that runs the load, the servers and the stores at once say how they compare, not what a site would reach.',
    '',
    ...(kind === '' ? [] : [kind, '']),
    ...(only.length === 0 ? [] : [`Only ${only.join(', ')}.`, '']),
    '## Numbers to reach',
    ...table(
      ['', 'goal', 'measured', ''],
      ...goals.map(({ what, goal, measured, met }) => [what, goal, measured, met ? 'met' : '**missed**']),
    ),
    '## On what',
    ...table(['', ''], ...(await machine(bench)), ['whole run', `${Math.round(seconds)} s`]),
    ...sections.flatMap(({ title, text, charts = [] }) => [
      `## ${title}`,
      '',
      ...text,
      ...charts.flatMap((chart) => [`![${chart.title}](charts/${chart.file})`, '']),
    ]),
    '## Configuration and raw output',
    '',
    ...details('Configuration', JSON.stringify(bench.sizes, undefined, 1).split('\n')),
    ...sections.flatMap(({ title, raw }) => details(title, raw)),
  ];
  return `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`;
}

const details = (title: string, lines: string[]) => [
  '<details>',
  `<summary>${title}</summary>`,
  '',
  '```text',
  ...lines.map((each) => each.trimEnd()),
  '```',
  '',
  '</details>',
  '',
];

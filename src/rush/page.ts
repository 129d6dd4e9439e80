/**
 * What a rush found as one HTML file that needs nothing else: no script, nothing from elsewhere, light and dark, on paper
 * and on a telephone. It says what the terminal says, and how it went over time. Pure: no I/O.
 */
import type { AuditReport } from '../audit/report.ts';
import { byKindChart, latencyChart } from './charts.ts';
import { markup, raw, type Html } from './html.ts';
import { answerRows, checkRows, failuresInWords, fellBehindInWords, resultRows, type RushReport } from './report.ts';

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --back: #fff; --good: #1a7f4b; --bad: #c22f2f;
  --c0: #3b82c4; --c1: #2e9e6b; --c2: #d98a1f; --c3: #8a63c9; --c4: #c2507a; --c5: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa5b4; --line: #36404d; --back: #12171e; --good: #4cc38a; --bad: #ff7b72; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --back: #fff; } section { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 62rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
p, .note { margin: .25rem 0; color: var(--soft); }
.verdict { display: inline-block; margin: .75rem 0; padding: .2rem .8rem; border: 2px solid; border-radius: 2rem; font-weight: 600; }
.holds { color: var(--good); } .broken { color: var(--bad); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; color: var(--soft); } td.n, th.n { text-align: right; } th.n { white-space: nowrap; }
svg { display: block; width: 100%; min-width: 36rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--soft); } .axis { stroke: var(--line); }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: .25rem 0; padding: 0; list-style: none; }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: .2em; margin-right: .4em; }
`;

/** @param report as it is written as JSON, too */
export function renderPage(report: RushReport): string {
  const title = `Rush at sale ${report.saleId}`;
  const { course, settings } = report;
  return markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
        <title>${title}</title>
        <style>
          ${raw(STYLE)}
        </style>
      </head>
      <body>
        <header>
          <h1>${title}</h1>
          <p>
            ${report.startedAt.slice(0, 19).replace('T', ' ')} UTC, ${settings.buyers.toLocaleString('en-US')} buyers,
            ${report.units.toLocaleString('en-US')} units, seed ${settings.seed}
          </p>
          ${verdict(report)}
        </header>
        <section>
          <h2>Result</h2>
          ${table([], resultRows(report))}
        </section>
        <section>
          <h2>Answers per second</h2>
          <p>In steps of ${course.bucketMs} ms, by when they were heard, from the first press until the last reply.</p>
          ${byKindChart(course)}
        </section>
        <section>
          <h2>Latency</h2>
          <p>Milliseconds, counted from when each request was due: a server that stalls is not flattered.</p>
          ${latencyChart(course)}
        </section>
        <section>
          <h2>Answers</h2>
          ${table(['answer', 'count', 'p50 ms', 'p99 ms', 'max ms'], answerRows(report))}
          ${report.driverFellBehind ? markup`<p>${fellBehindInWords(report)}</p>` : raw('')}
        </section>
        <section>
          <h2>What buyers were told, against the ledger</h2>
          ${table(['claim', 'looked at', ''], checkRows(report))}
        </section>
        ${audit(report.audit)} ${failures(report)}
        <section>
          <h2>How it was run</h2>
          ${table([], runRows(report))}
        </section>
      </body>
    </html> `.text;
}

function verdict(report: RushReport): Html {
  const failed = report.checks.filter((check) => check.failures.length > 0).length;
  const good = failed === 0 && (report.audit === null || report.audit.verdict === 'holds');
  const told = `${report.checks.length - failed} of ${report.checks.length} comparisons hold`;
  const audited = report.audit === null ? 'the audit was left out' : `audit: ${report.audit.verdict}`;
  return markup`<p class="verdict ${good ? 'holds' : 'broken'}">${told}, ${audited}</p>`;
}

type Cell = string | number;
const isFigure = (cell: Cell | undefined) => typeof cell === 'number' || /^[\d.,]+$/.test(cell ?? '');

/** Figures to the right, words to the left; a head that is empty is none. */
function table(head: string[], rows: Cell[][]): Html {
  const right = (n: number) => rows.some((row) => isFigure(row[n])) && n > 0;
  const cell = (tag: 'th' | 'td') => (words: Cell, n: number) =>
    markup`<${raw(tag)}${right(n) ? raw(' class="n"') : raw('')}>${String(words)}</${raw(tag)}>`;
  const line = (tag: 'th' | 'td', cells: Cell[]) =>
    markup`<tr>
      ${cells.map(cell(tag))}
    </tr>`;
  const thead =
    head.length === 0
      ? raw('')
      : markup`<thead>
          ${line('th', head)}
        </thead>`;
  return markup`<div class="wide">
    <table>
      ${thead}
      <tbody>
        ${rows.map((row) => line('td', row))}
      </tbody>
    </table>
  </div>`;
}

function audit(report: AuditReport | null): Html {
  if (report === null) return raw('');
  const rows = report.checks.map(({ name, looked, broken }) => [
    ...[name, looked.toLocaleString('en-US')],
    broken === 0 ? 'holds' : `BROKEN ${broken.toLocaleString('en-US')}×`,
  ]);
  const unjudged = report.unjudged.map(({ what, why }) => [what, '', `not judged: ${why}`]);
  return markup`<section>
    <h2>The audit: ${report.verdict}</h2>
    <p>It trusts nobody’s own word: it reads both stores, recomputes, and compares.</p>
    ${table(['check', 'looked at', ''], [...rows, ...unjudged])}
  </section>`;
}

function failures(report: RushReport): Html {
  const words = failuresInWords(report);
  if (words.length === 0) return raw('');
  return markup`<section>
    <h2>What does not hold</h2>
    <ul>
      ${words.map((each) => markup`<li>${each}</li>`)}
    </ul>
  </section>`;
}

/** The command line's words, and on what it ran. */
function runRows({ settings, machine }: RushReport): Cell[][] {
  const { report: _, html: __, ...told } = settings;
  const options = Object.entries(told).filter(([, value]) => value !== undefined);
  return [
    ...Object.entries(machine),
    ...options.map(([name, value]) => [
      `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
      String(value),
    ]),
  ];
}

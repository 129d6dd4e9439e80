/** The picture of a run: faults by what they struck, answers per second below, on one axis of time. Pure: no I/O. */
import type { Struck } from './faults.ts';

export type TimelineOptions = {
  title: string;
  /** Epoch milliseconds. */
  startedAt: number;
  struck: Struck[];
  /** Answers by kind, for each second. */
  answers: Map<string, number>[];
};

const LEFT = 150;
const WIDE = 1000;
const ROW = 18;
const TALL = 220;
const TOP = 40;

const FAULT_COLOURS: Record<string, string> = {
  kill: '#c0392b',
  restart: '#e08e45',
  freeze: '#2e86c1',
  cut: '#6c3483',
  slow: '#b39ddb',
  redis: '#c0392b',
  queue: '#c0392b',
  postgres: '#c0392b',
  provider: '#7f8c8d',
};

/** Answers in groups, from the bottom up. What is in none of them is "other". */
const GROUPS: { name: string; colour: string; kinds: string[] }[] = [
  { name: 'ok', colour: '#1e8449', kinds: ['ok'] },
  { name: 'dup', colour: '#82c99a', kinds: ['dup'] },
  { name: 'no (sold out, paused, over the limit)', colour: '#aeb6bf', kinds: ['sold_out', 'paused', 'qty_over_limit'] },
  {
    name: '503',
    colour: '#f1c40f',
    kinds: [
      ...['gate_not_loaded', 'gate_unavailable', 'queue_unavailable', 'ledger_unavailable', 'overloaded', 'not_ready'],
    ],
  },
  { name: 'no answer', colour: '#c0392b', kinds: ['no answer'] },
  { name: 'other', colour: '#5d6d7e', kinds: [] },
];

/** @returns the text of an SVG file */
export function drawTimeline({ title, startedAt, struck, answers }: TimelineOptions): string {
  const lastMs = Math.max(...struck.map(({ endedAt }) => endedAt - startedAt), answers.length * 1000, 1000);
  const x = (ms: number) => LEFT + (Math.max(0, ms) / lastMs) * WIDE;
  const rows = [...new Set(struck.map(({ target }) => target))].sort();
  const bottom = TOP + rows.length * ROW + 30;
  const parts = [
    text(LEFT, 22, title, 15),
    ...rows.map((row, n) => text(8, TOP + n * ROW + 13, row)),
    ...struck.map((fault) => bar(fault, TOP + rows.indexOf(fault.target) * ROW, x, startedAt)),
    ...stack(answers, bottom, x),
    ...axis(lastMs, bottom + TALL, x),
    ...GROUPS.map(({ name, colour }, n) => legend(name, colour, LEFT + n * 165, bottom + TALL + 40)),
  ];
  const [width, height] = [LEFT + WIDE + 20, bottom + TALL + 60];
  const style = 'font-family="sans-serif" font-size="11"';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ${style}>
<rect width="100%" height="100%" fill="white"/>\n${parts.join('\n')}\n</svg>\n`;
}

function bar(fault: Struck, y: number, x: (ms: number) => number, startedAt: number): string {
  const { n, kind, how } = fault;
  const [from, to] = [x(fault.startedAt - startedAt), x(fault.endedAt - startedAt)];
  const colour = FAULT_COLOURS[kind.split('-')[0] ?? ''] ?? 'black';
  const tip = `<title>${escape(`${n}: ${kind} ${how}`)}</title>`;
  const box = `<rect x="${from.toFixed(1)}" y="${y + 2}" width="${Math.max(3, to - from).toFixed(1)}" height="${ROW - 4}"`;
  return `${box} fill="${colour}">${tip}</rect>`;
}

function stack(answers: Map<string, number>[], top: number, x: (ms: number) => number): string[] {
  const groupOf = (kind: string) => GROUPS.findIndex(({ kinds }) => kinds.includes(kind));
  const seconds = answers.map((counts) => {
    const sums = GROUPS.map(() => 0);
    for (const [kind, count] of counts) {
      const group = groupOf(kind);
      const n = group < 0 ? GROUPS.length - 1 : group;
      sums[n] = (sums[n] ?? 0) + count;
    }
    return sums;
  });
  const most = Math.max(1, ...seconds.map((sums) => sums.reduce((sum, count) => sum + count, 0)));
  const parts = [text(8, top + 12, `answers per second`), text(8, top + 28, `(top: ${most})`)];
  seconds.forEach((sums, second) => {
    let y = top + TALL;
    sums.forEach((count, group) => {
      const high = (count / most) * TALL;
      y -= high;
      if (count === 0) return;
      const [from, to] = [x(second * 1000), x((second + 1) * 1000)];
      const box = `<rect x="${from.toFixed(1)}" y="${y.toFixed(1)}" width="${(to - from).toFixed(1)}"`;
      parts.push(`${box} height="${high.toFixed(1)}" fill="${GROUPS[group]?.colour ?? 'black'}"/>`);
    });
  });
  return parts;
}

function axis(lastMs: number, y: number, x: (ms: number) => number): string[] {
  const parts = [`<line x1="${LEFT}" y1="${y}" x2="${LEFT + WIDE}" y2="${y}" stroke="black"/>`];
  for (let ms = 0; ms <= lastMs; ms += 10_000) parts.push(text(x(ms) - 8, y + 15, `${ms / 1000} s`));
  return parts;
}

function legend(name: string, colour: string, x: number, y: number): string {
  return `<rect x="${x}" y="${y - 9}" width="10" height="10" fill="${colour}"/>${text(x + 14, y, name)}`;
}

function text(x: number, y: number, words: string, size = 11): string {
  return `<text x="${x.toFixed(0)}" y="${y}" font-size="${size}">${escape(words)}</text>`;
}

const escape = (words: string) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

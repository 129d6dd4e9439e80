/** How a rush went over time, as SVG for the page, whose style gives the colours. Pure: no I/O. */
import { markup, raw, type Html } from './html.ts';
import type { Course } from './tally.ts';

const WIDTH = 800;
const HEIGHT = 260;
const LEFT = 64;
const TOP = 12;
const BOTTOM = 24;
/** Kinds with a colour of their own; the rarer ones share the last. */
const COLOURS = 6;

const inner = { width: WIDTH - LEFT - 8, height: HEIGHT - TOP - BOTTOM };
const round = (n: number) => n.toFixed(1);

/** A step of 1, 2 or 5 times a power of ten, so that at most five of them reach `most`. */
function stepFor(most: number): number {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
}

type Scale = { x: (ms: number) => number; y: (value: number) => number; axes: Html };

/** @param most the largest value; @param unit of the values */
function scaleFor({ bucketMs, buckets }: Course, most: number, unit: string): Scale {
  const span = Math.max(1, buckets.length) * bucketMs;
  const step = stepFor(Math.max(most, 1));
  const top = Math.max(step, Math.ceil(most / step) * step);
  const x = (ms: number) => LEFT + (inner.width * ms) / span;
  const y = (value: number) => TOP + inner.height * (1 - value / top);
  const figure = (value: number) => Number(value.toPrecision(6)).toLocaleString('en-US');
  const lines = Array.from({ length: Math.round(top / step) + 1 }, (_, n) => n * step).map((value) => {
    const at = y(value);
    return markup`<line class="axis" x1="${LEFT}" x2="${WIDTH - 8}" y1="${round(at)}" y2="${round(at)}" />
      <text x="${LEFT - 6}" y="${round(at + 4)}" text-anchor="end">${figure(value)}</text>`;
  });
  const seconds = stepFor(span / 1000);
  const ticks = Array.from({ length: Math.floor(span / 1000 / seconds) + 1 }, (_, n) => n * seconds).map(
    (at) => markup`<text x="${round(x(at * 1000))}" y="${HEIGHT - 6}" text-anchor="middle">${figure(at)} s</text>`,
  );
  const name = markup`<text x="${LEFT + 4}" y="${TOP + 10}">${unit}</text>`;
  return { x, y, axes: markup`${lines}${ticks}${name}` };
}

const picture = (title: string, content: Html) =>
  markup`<div class="wide">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">
      <title>${title}</title>
      ${content}
    </svg>
  </div>`;
const colour = (n: number) => `var(--c${Math.min(n, COLOURS - 1)})`;
const key = (names: string[]) =>
  markup`<ul class="key">
    ${names.map((name, n) => markup`<li><i style="background: ${raw(colour(n))}"></i>${name}</li>`)}
  </ul>`;

/** Bars, one on the other: how many answers of each kind per second. */
export function byKindChart(course: Course): Html {
  const { bucketMs, buckets } = course;
  const totals = new Map<string, number>();
  for (const { counts } of buckets) {
    for (const [kind, count] of Object.entries(counts)) totals.set(kind, (totals.get(kind) ?? 0) + count);
  }
  const kinds = [...totals].sort(([, a], [, b]) => b - a).map(([kind]) => kind);
  const rate = (count: number) => (count * 1000) / bucketMs;
  const all = buckets.map(({ counts }) => rate(Object.values(counts).reduce((sum, count) => sum + count, 0)));
  const { x, y, axes } = scaleFor(course, Math.max(...all, 1), 'answers per second');
  const bars = buckets.flatMap(({ counts }, at) => {
    let below = 0;
    return kinds.flatMap((kind, n) => {
      const value = rate(counts[kind] ?? 0);
      if (value === 0) return [];
      const [top, bottom] = [y(below + value), y(below)];
      below += value;
      const [left, width] = [x(at * bucketMs), Math.max(0.5, x(bucketMs) - x(0) - 0.7)];
      return [
        markup`<rect
          x="${round(left)}"
          y="${round(top)}"
          width="${round(width)}"
          height="${round(bottom - top)}"
          style="fill: ${raw(colour(n))}"
        />`,
      ];
    });
  });
  return markup`${key(kinds.map((kind) => `${kind} (${(totals.get(kind) ?? 0).toLocaleString('en-US')})`))}${picture('Answers per second by kind, over time', markup`${axes}${bars}`)}`;
}

const PERCENTILES = ['p50', 'p99'] as const;

/** Lines: half of the answers of a step were heard within the first, all but a hundredth within the second. */
export function latencyChart(course: Course): Html {
  const { bucketMs, buckets } = course;
  const heard = buckets.flatMap((bucket, at) => (bucket.times ? [{ at: (at + 0.5) * bucketMs, ...bucket.times }] : []));
  const { x, y, axes } = scaleFor(course, Math.max(...heard.map(({ p99 }) => p99), 1), 'ms');
  const lines = PERCENTILES.map((percentile, n) => {
    const points = heard.map((bucket) => `${round(x(bucket.at))},${round(y(bucket[percentile]))}`).join(' ');
    return markup`<polyline points="${points}" style="fill: none; stroke: ${raw(colour(n))}; stroke-width: 2" />`;
  });
  return markup`${key([...PERCENTILES])}${picture('Latency over time: p50 and p99 in milliseconds', markup`${axes}${lines}`)}`;
}

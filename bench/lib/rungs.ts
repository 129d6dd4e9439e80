/**
 * When a rung of the ladder holds, and what broke first when it did not: by its buyers' wait, by errors, and by what
 * the rest of the shop felt beside them.
 */
import type { Goal } from '../bench.ts';
import type { Felt, Seen } from './bystander.ts';
import { table } from './markdown.ts';
import { told, type Round } from './rounds.ts';
import { digits, median } from './stats.ts';

/** One rate of buyers asked of one design with so many units on sale, and what the rest of the shop felt meanwhile. */
export type Step = { key: string; name: string; units: number; rate: number; round: Round; felt: Felt };
/** What the rest of the shop felt beside the same server while nobody bought. */
export type Quiet = { name: string; units: number; felt: Felt };
/** Medians over all quiet rounds. */
export type Baseline = Record<keyof Felt, Pick<Seen, 'p50' | 'p99'>>;

/** A rung holds while 99 of 100 buyers are answered within this time, nobody gets an error, … */
export const HOLDS_MS = 250;
/** … and the median of what the shop asks the database is at most so much longer than on a quiet system. */
export const SHOP_MS = 2;
/** The goal: what the shop asks the database takes at most so many times as long as on a quiet system. */
const LEFT_ALONE = 1.5;

/** What the shop asks the database: through the pool that the sale uses, or on its own where the sale uses none. */
export const shop = ({ catalogue, query }: Felt): Seen => catalogue ?? query;

/** @throws {Error} without quiet rounds, of those with a shared pool too */
export function baseline(quiets: Quiet[]): Baseline {
  const middle = (what: keyof Felt) => {
    const seen = quiets.flatMap(({ felt }) => felt[what] ?? []);
    return { p50: median(seen.map(({ p50 }) => p50)), p99: median(seen.map(({ p99 }) => p99)) };
  };
  return { query: middle('query'), livez: middle('livez'), catalogue: middle('catalogue') };
}

/** The same as {@link shop} on a quiet system. */
const still = (felt: Felt, quiet: Baseline) => quiet[felt.catalogue ? 'catalogue' : 'query'];

/** How many times as long as on a quiet system the shop waits for the database. */
export function ratio(felt: Felt, quiet: Baseline, at: 'p50' | 'p99' = 'p50'): number {
  return shop(felt)[at] / still(felt, quiet)[at];
}

/** Requests of the shop, of any kind, that got no answer or a wrong one. */
export const failures = (felt: Felt): number => Object.values(felt).reduce((sum, { failed }) => sum + failed, 0);

/** Everything that speaks against a rung at this rate, in words; empty while it holds. */
export function broken({ round, felt }: Step, quiet: Baseline): string[] {
  const { untold } = told(round);
  const [code] = Object.entries(round.refusals).sort(([, a], [, b]) => b - a)[0] ?? [];
  const lost = failures(felt);
  const { p50 } = shop(felt);
  return [
    ...(untold > 0 ? [`${count(untold)} errors${code === undefined ? '' : ` (${code})`}`] : []),
    ...(lost > 0 ? [`the shop got ${count(lost)} errors`] : []),
    ...(round.latencyMs.p99 <= HOLDS_MS ? [] : [`buyers’ p99 ${digits(round.latencyMs.p99)} ms`]),
    ...(p50 <= still(felt, quiet).p50 + SHOP_MS ? [] : [`the shop waits ${digits(p50)} ms`]),
  ];
}

export const holds = (step: Step, quiet: Baseline): boolean => broken(step, quiet).length === 0;

export function verdict(step: Step, quiet: Baseline): string {
  return holds(step, quiet) ? 'holds' : `**${broken(step, quiet).join('; ')}**`;
}

/**
 * @param bare steps of a server that touches no store
 * @returns the least rate at which even that one did not answer its buyers in time; infinite when it always did
 */
export function machinesEnd(bare: Step[]): number {
  const late = bare.filter(({ round }) => told(round).untold > 0 || !(round.latencyMs.p99 <= HOLDS_MS));
  return Math.min(...late.map(({ rate }) => rate));
}

/**
 * flashgate's worst median of all rates and sizes, so that no step is hidden by another; the worst design's beside it.
 * Of the p99s, each the second slowest of some two hundred, the middle is told.
 * @param steps that all designs were asked
 */
export function goal(steps: Step[], quiet: Baseline): Goal {
  const worst = (of: Step[]) => ({
    p50: Math.max(...of.map(({ felt }) => ratio(felt, quiet))),
    p99: of.length === 0 ? Number.NaN : median(of.map(({ felt }) => ratio(felt, quiet, 'p99'))),
    failed: of.reduce((sum, { felt }) => sum + failures(felt), 0),
  });
  const said = (of: Step[]) => {
    const { p50, p99, failed } = worst(of);
    return `${digits(p50)} × (p99 ${digits(p99)} ×${failed > 0 ? `, ${count(failed)} failed` : ''})`;
  };
  const own = steps.filter(({ key }) => key === 'flashgate');
  const others = [...new Set(steps.filter(({ key }) => key !== 'flashgate').map(({ name }) => name))]
    .map((name) => ({ name, of: steps.filter((step) => step.name === name) }))
    .sort((a, b) => worst(b.of).p50 - worst(a.of).p50);
  const { p50, failed } = worst(own);
  return {
    what: 'an unrelated query’s latency (median) during the rush, against a quiet system',
    goal: `≤ ${LEFT_ALONE} ×, none failed`,
    measured: [said(own), ...others.slice(0, 1).map(({ name, of }) => `${name}: ${said(of)}`)].join('; '),
    met: own.length > 0 && p50 <= LEFT_ALONE && failed === 0,
  };
}

/** Per design and number of units: the highest rate it held below the first that it did not, and what broke there. */
export function summary(steps: Step[], quiet: Baseline, end: number): string[] {
  const sizes = [...new Set(steps.map(({ units }) => units))];
  const rows = [...new Set(steps.map(({ name }) => name))].map((name) => [
    name,
    ...sizes.flatMap((units) =>
      reach(
        steps.filter((step) => step.name === name && step.units === units),
        quiet,
        end,
      ),
    ),
  ]);
  return table(
    ['', ...sizes.flatMap((units) => [`${count(units)} units: holds buyers/s`, 'what breaks first'])],
    ...rows,
  );
}

/** @param steps of one design and one number of units, by rate */
function reach(steps: Step[], quiet: Baseline, end: number): [string, string] {
  if (steps.length === 0) return ['–', '–'];
  const fell = steps.find((step) => !holds(step, quiet));
  const held = steps.filter(({ rate }) => rate < (fell?.rate ?? Infinity)).at(-1);
  const machine = fell && fell.key !== 'bare' && fell.rate >= end ? ' (the bare route falls there too)' : '';
  return [
    held ? count(held.rate) : 'none of those tried',
    fell ? `at ${count(fell.rate)}: ${broken(fell, quiet).join('; ')}${machine}` : 'nothing up to there',
  ];
}

const count = (value: number) => value.toLocaleString('en-US');

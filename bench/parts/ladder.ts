/**
 * What each rung holds, and what the rest of the shop feels: buyers come at a rate, whether they are answered or not,
 * while the shop's own queries and GET /livez are timed from beside.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Section } from '../bench.ts';
import type { Felt, Watching } from '../lib/bystander.ts';
import type { Chart } from '../lib/chart.ts';
import { ask, endChild, startChild } from '../lib/child.ts';
import { table } from '../lib/markdown.ts';
import { freshly, line, rush } from '../lib/rounds.ts';
import * as rungs from '../lib/rungs.ts';
import type { Baseline, Quiet, Step } from '../lib/rungs.ts';
import { digits } from '../lib/stats.ts';
import { DESIGNS, type Target } from '../lib/targets.ts';
import type { Sizes } from '../sizes.ts';

/** The bare route first: from the rate at which it falls on, it is the machine that ends. */
const KEYS = ['bare', 'forUpdate', 'update', 'memory', 'queue', 'redis', 'flashgate', 'allCores'] as const;
type Key = (typeof KEYS)[number];

const CONNECTIONS = 500;

type Watch = <T>(target: Target, work: () => Promise<T>) => Promise<{ result: T; felt: Felt }>;
type Measured = { steps: Step[]; quiets: Quiet[]; raw: string[] };

export async function ladder(bench: Bench): Promise<Section> {
  const { child } = await startChild(join(import.meta.dirname, '../lib/bystander.ts'), {
    env: { DATABASE_URL: bench.peers.url },
  });
  const watch: Watch = async ({ port, catalogue }, work) => {
    await ask(child, { start: { port, catalogue } } satisfies Watching);
    const result = await work();
    const felt = (await ask(child, { stop: true } satisfies Watching)) as Felt;
    return { result, felt };
  };
  const measured: Measured = { steps: [], quiets: [], raw: [] };
  try {
    for (const units of bench.sizes.ladder.units) {
      for (const key of KEYS) {
        if (key === 'bare' && measured.steps.length > 0) continue; // it sells nothing: as many units as you like
        await freshly(bench, DESIGNS[key], (target) => climb(bench, measured, { key, units, target, watch }));
      }
    }
  } finally {
    await endChild(child);
  }
  return section(bench, measured);
}

type Climb = { key: Key; units: number; target: Target; watch: Watch };

/** One design with so many units: quiet first, then rate after rate, until it no longer holds. */
async function climb(bench: Bench, { steps, quiets, raw }: Measured, { key, units, target, watch }: Climb) {
  const { rates, seconds, quietSeconds, askedUpTo } = bench.sizes.ladder;
  const { name } = DESIGNS[key];
  const note = (text: string) => {
    raw.push(text);
    bench.say(text);
  };
  const { felt } = await watch(target, () => sleep(quietSeconds * 1000));
  quiets.push({ name, units, felt });
  note(`${name}, ${units} units, quiet  ${said(felt)}`);
  for (const rate of rates) {
    const fell = steps.some((step) => step.key === key && step.units === units && late(step));
    const end = rungs.machinesEnd(steps.filter((step) => step.key === 'bare'));
    if (rate > askedUpTo && (fell || rate > end)) break;
    const requests = Math.round(rate * (fell || rate >= end ? seconds / 2 : seconds)); // the line only grows
    const press = { connections: CONNECTIONS, requests, rate };
    const { result: round, felt } = await watch(target, () => rush(bench, target, units, press));
    steps.push({ key, name, units, rate, round, felt });
    note(`${line(`${name}, ${units} units, ${rate}/s`, round)}  ${said(felt)}`);
    if (round.unanswered > 0) break; // it still works off what nobody waits for
  }
}

/** While it is measured nobody knows all of the quiet rounds yet: only buyers are asked. */
const late = (step: Step) => Number.isFinite(rungs.machinesEnd([step]));

const said = (felt: Felt) =>
  Object.entries(felt)
    .map(
      ([what, { p50, p99, count, failed, reason }]) =>
        `${what} ms p50 ${digits(p50)} p99 ${digits(p99)} of ${count} failed ${failed}${reason === undefined ? '' : ` (${reason})`}`,
    )
    .join('  ');

function section({ sizes }: Bench, { steps, quiets, raw }: Measured): Section {
  const { units: all, askedUpTo } = sizes.ladder;
  const quiet = rungs.baseline(quiets);
  const end = rungs.machinesEnd(steps.filter(({ key }) => key === 'bare'));
  const most = Math.max(...all);
  const held = rungs.summary(steps, quiet, end);
  const felt = shopTable(
    steps.filter(({ rate }) => rate === askedUpTo),
    quiet,
  );
  return {
    title: 'What each rung holds, and what the rest of the shop feels',
    goals: [
      rungs.goal(
        steps.filter(({ rate }) => rate <= askedUpTo),
        quiet,
      ),
    ],
    text: [
      ...method(sizes.ladder, quiets, quiet),
      ...held,
      `What the rest of the shop feels at ${count(askedUpTo)} buyers per second, whether the rung holds or not:`,
      ...felt,
      ...all.flatMap((units) => [
        `**${count(units)} units**`,
        ...stepTable(
          steps.filter((step) => step.units === units),
          quiet,
        ),
      ]),
    ],
    charts: [chart(steps, quiet, most, askedUpTo)],
    figures: {
      'ladder-table': `\n${held.join('\n')}\n`,
      'shop-table': `\n${felt.join('\n')}\n`,
      ...figures(steps, quiet, sizes.ladder),
    },
    raw,
  };
}

/** For the prose of docs/when-not.md: many units, the fewest buyers and the most of those that all are asked. */
function figures(steps: Step[], quiet: Baseline, { units, rates, askedUpTo }: Sizes['ladder']): Record<string, string> {
  const of = (key: Key, rate: number | undefined, pick: (step: Step) => number) => {
    const step = steps.find((each) => each.key === key && each.units === Math.max(...units) && each.rate === rate);
    return digits(step ? pick(step) : Number.NaN);
  };
  const few = rates[0];
  return {
    'shop-quiet-ms': digits(quiet.catalogue.p50),
    'shop-update-ms': of('update', askedUpTo, ({ felt }) => rungs.shop(felt).p50),
    'shop-for-update-ms': of('forUpdate', askedUpTo, ({ felt }) => rungs.shop(felt).p50),
    'shop-queue-ms': of('queue', askedUpTo, ({ felt }) => rungs.shop(felt).p50),
    'own-query-update-ms': of('update', askedUpTo, ({ felt }) => felt.query.p50),
    'queue-p99-ms': of('queue', askedUpTo, ({ round }) => round.latencyMs.p99),
    'flashgate-p99-ms': of('flashgate', askedUpTo, ({ round }) => round.latencyMs.p99),
    'queue-livez-ms': of('queue', askedUpTo, ({ felt }) => felt.livez.p99),
    'flashgate-livez-ms': of('flashgate', askedUpTo, ({ felt }) => felt.livez.p99),
    'update-win-ms': of('update', few, ({ round }) => round.latencyMs.p50),
    'flashgate-win-ms': of('flashgate', few, ({ round }) => round.latencyMs.p50),
    'update-win-us': of('update', few, ({ round }) => round.cpu.server),
    'flashgate-win-us': of('flashgate', few, ({ round }) => round.cpu.server),
  };
}

const count = (value: number) => value.toLocaleString('en-US');

function method(sizes: Sizes['ladder'], quiets: Quiet[], quiet: Baseline): string[] {
  const { seconds, quietSeconds, askedUpTo } = sizes;
  const each = (['query', 'catalogue', 'livez'] as const).map(
    (what) => `${what} p50 ${digits(quiet[what].p50)} ms, p99 ${digits(quiet[what].p99)} ms`,
  );
  return [
    `Buyers come at a fixed rate for ${seconds} s, whether they are answered or not, over up to ${CONNECTIONS} connections; latency is counted from when each was due. Beside them the rest of the shop asks, a hundred times a second each, for`,
    '',
    '- **query**: a product, from a table that no sale touches, on a connection of its own;',
    '- **catalogue**: the same product from the design’s server, which takes it through the pool of 100 that the sale draws on too, as in one application. Only the SQL designs have such a pool: flashgate and the plain gate leave the shop’s alone, so what the shop feels of them is the query on its own connection;',
    '- **livez**: `GET /livez` of the same process, as any page that needs no store; both over connections that are kept open.',
    '',
    `What fails, or takes longer than 5 s, counts as 5 s. A rung holds while 99 of 100 buyers are answered within ${rungs.HOLDS_MS} ms, neither they nor the shop get an error, and the median of what the shop asks the database (“the shop”: the catalogue where there is one, or else the query) is at most ${rungs.SHOP_MS} ms longer than on a quiet system. All designs are asked up to ${count(askedUpTo)} buyers per second, whether they hold or not, and further until their buyers wait too long or those of the bare route do. That one touches no store: the rate at which it falls is the end of one server process on this machine, which drives the load as well, and says nothing of a design. Beyond such a fall they come half as long.`,
    '',
    `Quiet is the same server, warm, when nobody buys: ${quietSeconds} s before each climb. Medians of ${quiets.length} such rounds: ${each.join('; ')}.`,
  ];
}

function shopTable(steps: Step[], quiet: Baseline): string[] {
  const sizes = [...new Set(steps.map(({ units }) => units))];
  const cells = (step: Step | undefined) => {
    if (!step) return ['–', '–', '–', '–'];
    const { p50, p99 } = rungs.shop(step.felt);
    const times = `${digits(rungs.ratio(step.felt, quiet))} ×`;
    return [digits(p50), times, digits(p99), digits(step.felt.livez.p99)];
  };
  const still = (what: 'query' | 'catalogue') =>
    sizes.flatMap(() => [digits(quiet[what].p50), '1 ×', digits(quiet[what].p99), digits(quiet.livez.p99)]);
  return table(
    [
      '',
      ...sizes.flatMap((units) => [`${count(units)} units: the shop’s p50 ms`, 'of quiet', 'p99 ms', '/livez p99 ms']),
    ],
    ['quiet, own connection', ...still('query')],
    ['quiet, the design’s pool', ...still('catalogue')],
    ...[...new Set(steps.map(({ name }) => name))].map((name) => [
      name,
      ...sizes.flatMap((units) => cells(steps.find((step) => step.name === name && step.units === units))),
    ]),
  );
}

function stepTable(steps: Step[], quiet: Baseline): string[] {
  const head = ['design, buyers per second', 'p50 ms', 'p99 ms', '', 'query p50', 'query p99', 'catalogue p50'];
  return table(
    [...head, 'catalogue p99', 'livez p50', 'livez p99', 'CPU µs: server', 'Redis', 'Postgres'],
    ...steps.map((step) => {
      const { name, rate, round, felt } = step;
      const { query, catalogue, livez } = felt;
      return [
        `${name}, ${count(rate)}`,
        digits(round.latencyMs.p50),
        digits(round.latencyMs.p99),
        rungs.verdict(step, quiet),
        ...[query, catalogue, livez].flatMap((seen) => (seen ? [digits(seen.p50), digits(seen.p99)] : ['–', '–'])),
        ...[round.cpu.server, round.cpu.redis, round.cpu.postgres].map(digits),
      ];
    }),
  );
}

function chart(steps: Step[], quiet: Baseline, units: number, rate: number): Chart {
  return {
    file: 'bystander.svg',
    title: `What the rest of the shop waits for the database, p99, ms: ${count(rate)} buyers per second, ${count(units)} units`,
    bars: [
      { name: 'quiet', value: quiet.query.p99 },
      ...steps
        .filter((step) => step.units === units && step.rate === rate)
        .map(({ name, felt }) => ({ name, value: rungs.shop(felt).p99 })),
    ],
  };
}

/**
 * What each rung holds, and what the rest of the shop feels: buyers come at a rate, whether they are answered or not,
 * while an unrelated query and GET /livez are timed from beside.
 */
import { join } from 'node:path';
import type { Bench, Goal, Section } from '../bench.ts';
import type { Felt, Watching } from '../lib/bystander.ts';
import { ask, endChild, startChild } from '../lib/child.ts';
import { table } from '../lib/markdown.ts';
import { freshly, line, rush, told, type Round } from '../lib/rounds.ts';
import { digits, median } from '../lib/stats.ts';
import { DESIGNS, type Design } from '../lib/targets.ts';

const KEYS = ['forUpdate', 'update', 'memory', 'queue', 'noLatch', 'flashgate'] as const;
type Key = (typeof KEYS)[number];
type Step = { key: Key; design: Design; units: number; rate: number; round: Round; felt: Felt };

const CONNECTIONS = 500;
/** A rung holds while 99 of 100 buyers are answered within this time, and nobody gets an error. */
const HOLDS_MS = 250;
/** The rest of the shop is left alone while its query's median takes no longer than this many times the quiet one. */
const LEFT_ALONE = 1.5;

type Watch = <T>(port: number, work: () => Promise<T>) => Promise<{ result: T; felt: Felt }>;

export async function ladder(bench: Bench): Promise<Section> {
  const { rates, units: sizes, seconds } = bench.sizes.ladder;
  const { child } = await startChild(join(import.meta.dirname, '../lib/bystander.ts'), {
    env: { DATABASE_URL: bench.peers.url },
  });
  const watch: Watch = async (port, work) => {
    child.send({ start: { port } } satisfies Watching);
    const result = await work();
    const felt = (await ask(child, { stop: true } satisfies Watching)) as Felt;
    return { result, felt };
  };
  const steps: Step[] = [];
  const raw: string[] = [];
  try {
    const quiet = await freshly(bench, DESIGNS.flashgate, async ({ port }) => {
      const { felt } = await watch(port, () => new Promise((resolve) => setTimeout(resolve, seconds * 1000)));
      return felt;
    });
    raw.push(`quiet  ${said(quiet)}`);
    for (const units of sizes) {
      for (const rate of rates) {
        for (const key of KEYS) {
          const below = steps.filter((step) => step.key === key && step.units === units);
          if (below.some((step) => !holds(step.round))) continue; // it fell at a lower rate
          const design: Design = DESIGNS[key];
          const press = { connections: CONNECTIONS, requests: Math.round(rate * seconds), rate };
          const { result: round, felt } = await freshly(bench, design, (target) =>
            watch(target.port, () => rush(bench, target, units, press)),
          );
          steps.push({ key, design, units, rate, round, felt });
          raw.push(`${line(`${design.name}, ${units} units, ${rate}/s`, round)}  ${said(felt)}`);
          bench.say(raw.at(-1) ?? '');
        }
      }
    }
    return section(bench, steps, quiet, raw);
  } finally {
    await endChild(child);
  }
}

const said = ({ query, livez }: Felt) =>
  `query ms p50 ${digits(query.p50)} p99 ${digits(query.p99)} failed ${query.failed}  livez ms p50 ${digits(livez.p50)} p99 ${digits(livez.p99)} failed ${livez.failed}`;

const errors = (round: Round) => told(round).untold;

const holds = (round: Round) => errors(round) === 0 && round.latencyMs.p99 <= HOLDS_MS;

/** Why it no longer holds, in words. */
function verdict(round: Round): string {
  if (holds(round)) return 'holds';
  const [code] = Object.entries(round.refusals).sort(([, a], [, b]) => b - a)[0] ?? [];
  if (errors(round) > 0)
    return `**${errors(round).toLocaleString('en-US')} errors${code === undefined ? '' : ` (${code})`}**`;
  return `**p99 over ${HOLDS_MS} ms**`;
}

function section({ sizes }: Bench, steps: Step[], quiet: Felt, raw: string[]): Section {
  const { seconds, rates, units: all } = sizes.ladder;
  const charted = rates[Math.min(1, rates.length - 1)] ?? 0;
  const own = steps.filter(({ key, units }) => key === 'flashgate' && units === all[0]);
  const during = median(own.map(({ felt }) => felt.query.p50)) / quiet.query.p50;
  const goals: Goal[] = [
    {
      what: 'an unrelated query’s latency (median) during the rush, against a quiet system',
      goal: `≤ ${LEFT_ALONE} ×`,
      measured: `${digits(during)} × (median over ${own.map(({ rate }) => rate.toLocaleString('en-US')).join(', ')} buyers per second)`,
      met: during <= LEFT_ALONE,
    },
  ];
  return {
    title: 'What each rung holds, and what the rest of the shop feels',
    goals,
    text: [
      `Buyers come at a fixed rate for ${seconds} s, whether they are answered or not, over up to ${CONNECTIONS} connections; latency is counted from when each was due. Beside them, a hundred times a second each, a query of another table on a connection of its own, and \`GET /livez\`. A rung holds while 99 of 100 buyers are answered within ${HOLDS_MS} ms and nobody gets an error; one that fell is not asked at higher rates.`,
      '',
      `Quiet system: query p50 ${digits(quiet.query.p50)} ms, p99 ${digits(quiet.query.p99)} ms; \`/livez\` p50 ${digits(quiet.livez.p50)} ms, p99 ${digits(quiet.livez.p99)} ms.`,
      ...all.flatMap((units) => [
        '',
        `**${units.toLocaleString('en-US')} units**`,
        ...stepTable(steps.filter((step) => step.units === units)),
      ]),
    ],
    charts: [
      {
        file: 'bystander.svg',
        title: `An unrelated query at ${charted.toLocaleString('en-US')} buyers per second, ${String(all[0])} units: p99, ms`,
        bars: [
          { name: 'quiet', value: quiet.query.p99 },
          ...steps
            .filter(({ units, rate }) => units === all[0] && rate === charted)
            .map(({ design, felt }) => ({ name: design.name, value: felt.query.p99 })),
        ],
      },
    ],
    figures: { 'ladder-table': summary(steps, all), 'query-ratio': digits(during) },
    raw,
  };
}

function stepTable(steps: Step[]): string[] {
  return table(
    [
      'design, buyers per second',
      'p50 ms',
      'p99 ms',
      '',
      'query p50',
      'query p99',
      'livez p50',
      'livez p99',
      'CPU µs: server',
      'Redis',
      'Postgres',
    ],
    ...steps.map(({ design, rate, round, felt }) => [
      `${design.name}, ${rate.toLocaleString('en-US')}`,
      digits(round.latencyMs.p50),
      digits(round.latencyMs.p99),
      verdict(round),
      ...[felt.query.p50, felt.query.p99, felt.livez.p50, felt.livez.p99].map(digits),
      ...[round.cpu.server, round.cpu.redis, round.cpu.postgres].map(digits),
    ]),
  );
}

/** For the page that says when not to build this: per rung, the highest rate it held, and how it fell. */
function summary(steps: Step[], all: number[]): string {
  const rows = KEYS.map((key) => {
    const of = steps.filter((step) => step.key === key);
    return [
      of[0]?.design.name ?? key,
      ...all.flatMap((units) => {
        const mine = of.filter((step) => step.units === units);
        const held = mine.filter(({ round }) => holds(round)).at(-1);
        const fell = mine.find(({ round }) => !holds(round));
        return [
          held ? held.rate.toLocaleString('en-US') : 'none of those tried',
          fell
            ? `at ${fell.rate.toLocaleString('en-US')}: ${verdict(fell.round).replaceAll('**', '')}`
            : 'nothing up to there',
          held ? `${digits(held.felt.query.p99)} ms` : '–',
        ];
      }),
    ];
  });
  const head = all.flatMap((units) => [
    `${units.toLocaleString('en-US')} units: holds buyers/s`,
    'what broke first',
    'unrelated query p99',
  ]);
  return `\n${table(['', ...head], ...rows).join('\n')}\n`;
}

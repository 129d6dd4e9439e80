/** The price of a "no": server CPU per refusal while sold out, flashgate against bare Fastify, and where it goes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Goal, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import { profileClock, summarise, type Summary } from '../lib/profile.ts';
import { line, measure, warmUp, type Round } from '../lib/rounds.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { DESIGNS, type Design, type Target } from '../lib/targets.ts';

const UNITS = 100;
const CONNECTIONS = 200;
const COMPARED = ['bare', 'serialised', 'flashgate', 'noLatch', 'redis'] as const;
const PROFILED = ['bare', 'flashgate'] as const;
const SHOWN = 16;

export async function refusal(bench: Bench): Promise<Section> {
  const { requests, rounds } = bench.sizes.refusal;
  const sides: { key: (typeof COMPARED)[number]; design: Design; target: Target; saleId: string; all: Round[] }[] = [];
  const raw: string[] = [];
  try {
    for (const key of COMPARED) {
      const design: Design = DESIGNS[key];
      const target = await design.start(bench);
      sides.push({ key, design, target, saleId: await soldOut(bench, target), all: [] });
    }
    // One round more than counted: the first compiles what the others run.
    for (let n = 0; n <= rounds; n += 1) {
      for (const { target, saleId, all } of sides) {
        const round = await measure(bench, target, saleId, { connections: CONNECTIONS, requests });
        if (n === 0) continue;
        all.push(round);
        raw.push(line(target.name, round));
        bench.say(line(target.name, round));
      }
    }
  } finally {
    for (const { target } of sides) await target.stop();
  }
  const of = (key: (typeof COMPARED)[number], pick: (round: Round) => number) =>
    (sides.find((side) => side.key === key)?.all ?? []).map(pick);
  const ratios = of('flashgate', (round) => round.cpu.server).map(
    (us, n) => us / (of('bare', (round) => round.cpu.server)[n] ?? Number.NaN),
  );
  const profiles = await inTurn(PROFILED, (key) => profile(bench, DESIGNS[key]));
  const goals: Goal[] = [
    {
      what: 'a refusal while sold out: server CPU per request, against a bare Fastify route with the same schema and answer',
      goal: '≤ 1.0 ×',
      measured: `${digits(median(ratios))} ×`,
      met: median(ratios) <= 1,
    },
  ];
  return {
    title: 'The price of a "no"',
    goals,
    text: [
      `A sale of ${UNITS} units, sold out; ${requests.toLocaleString('en-US')} other buyers press once each, over ${CONNECTIONS} kept-alive connections, as fast as they are answered; ${rounds} rounds, the designs in turn, after one that is not counted. One server process each.`,
      ...table(
        ['design', 'server CPU µs per refusal', 'Redis CPU µs', 'refusals per second', 'of bare, server CPU'],
        ...sides.map(({ key, design }) => [
          design.name,
          withSpread(of(key, (round) => round.cpu.server)),
          withSpread(of(key, (round) => round.cpu.redis)),
          withSpread(of(key, (round) => round.rate)),
          `${digits(median(of(key, (round) => round.cpu.server)) / median(of('bare', (round) => round.cpu.server)))} ×`,
        ]),
      ),
      'Where the time goes (`--cpu-prof`; the profiler itself costs some). Self time in µs per request:',
      ...profileTable(profiles),
    ],
    charts: [
      {
        file: 'refusal.svg',
        title: 'Server CPU per refusal, µs',
        bars: sides.map(({ key, design }) => ({ name: design.name, value: median(of(key, (r) => r.cpu.server)) })),
      },
    ],
    figures: {
      'refusal-us': digits(median(of('flashgate', (round) => round.cpu.server))),
      'refusal-bare-us': digits(median(of('bare', (round) => round.cpu.server))),
      'refusal-ratio': digits(median(ratios)),
      'refusal-per-core': digits(1e6 / median(of('flashgate', (round) => round.cpu.server))),
      'cores-per-million': digits(median(of('flashgate', (round) => round.cpu.server))),
      'redis-per-million': digits(median(of('flashgate', (round) => round.cpu.redis))),
      'scale-table': scaleTable({
        server: median(of('flashgate', (round) => round.cpu.server)),
        askingServer: median(of('noLatch', (round) => round.cpu.server)),
        askingRedis: median(of('noLatch', (round) => round.cpu.redis)),
      }),
      'no-latch-us': digits(median(of('noLatch', (round) => round.cpu.server))),
      'no-latch-redis-us': digits(median(of('noLatch', (round) => round.cpu.redis))),
    },
    raw,
  };
}

/** The most of one API process' share that a latched sale asks of Redis: a look per period of 100 ms. */
const LOOKS_PER_SECOND = 10;

/** What the measured costs come to when buyers grow: cores by buyers per second. */
function scaleTable({ server, askingServer, askingRedis }: Record<'server' | 'askingServer' | 'askingRedis', number>) {
  const cores = (rate: number, us: number) => (rate * us) / 1e6;
  const rows = [20_000, 200_000, 1_000_000, 2_000_000, 20_000_000].map((rate) => [
    rate.toLocaleString('en-US'),
    digits(cores(rate, server)),
    digits(Math.max(1, Math.ceil(cores(rate, server))) * LOOKS_PER_SECOND),
    digits(cores(rate, askingServer)),
    digits(cores(rate, askingRedis)),
  ]);
  const head = [
    'buyers per second',
    'API cores',
    'calls to Redis per second',
    'not latched: API cores',
    'not latched: Redis cores',
  ];
  return `\n${table(head, ...rows).join('\n')}\n`;
}

/** A sale of which this target knows that nothing is left. */
async function soldOut(bench: Bench, target: Target): Promise<string> {
  await warmUp(bench, target, CONNECTIONS, Math.min(5_000, bench.sizes.refusal.requests));
  const saleId = await target.newSale(UNITS);
  await measure(bench, target, saleId, { connections: CONNECTIONS, requests: 10 * UNITS });
  return saleId;
}

async function inTurn<K, T>(keys: readonly K[], work: (key: K) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (const key of keys) results.push(await work(key));
  return results;
}

async function profile(bench: Bench, design: Design): Promise<{ name: string; summary: Summary }> {
  const requests = bench.sizes.refusal.profiled;
  const folder = join(bench.folder, `profile-${design.name.replaceAll(/\W+/g, '-')}`);
  mkdirSync(folder);
  const target = await design.start(bench, { profileTo: folder });
  const window = { from: 0, to: 0 };
  try {
    const saleId = await soldOut(bench, target);
    window.from = profileClock();
    await measure(bench, target, saleId, { connections: CONNECTIONS, requests });
    window.to = profileClock();
  } finally {
    await target.stop();
  }
  return { name: design.name, summary: summarise(folder, window, requests) };
}

function profileTable(profiles: { name: string; summary: Summary }[]): string[] {
  return profiles.flatMap(({ name, summary }) =>
    table(
      [`${name}: by function`, `µs of ${digits(summary.total)}`],
      ...summary.functions.slice(0, SHOWN).map(({ what, us }) => [`\`${what}\``, digits(us)]),
    ),
  );
}

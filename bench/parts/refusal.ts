/** The price of a "no": server CPU per refusal while sold out, flashgate against bare Fastify, and where it goes. */
import type { Bench, Goal, Section } from '../bench.ts';
import { code, table } from '../lib/markdown.ts';
import type { Summary } from '../lib/profile.ts';
import { profile } from '../lib/profiled.ts';
import { line, measure, warmUp, type Round } from '../lib/rounds.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { DESIGNS, type Design, type Target } from '../lib/targets.ts';

const UNITS = 100;
const CONNECTIONS = 200;
const COMPARED = ['bare', 'serialised', 'gathered', 'flashgate', 'noLatch', 'redis'] as const;
const PROFILED = ['bare', 'flashgate'] as const;
const SHOWN = 16;

export async function refusal(bench: Bench): Promise<Section> {
  const { requests, rounds } = bench.sizes.refusal;
  const sides: { key: (typeof COMPARED)[number]; design: Design; target: Target; saleId: string; all: Round[] }[] = [];
  const raw: string[] = [];
  let looks = 0;
  try {
    for (const key of COMPARED) {
      const design: Design = DESIGNS[key];
      const target = await design.start(bench);
      sides.push({ key, design, target, saleId: await soldOut(bench, target), all: [] });
    }
    // One round more than counted: the first compiles what the others run.
    for (let n = 0; n <= rounds; n += 1) {
      for (const { key, target, saleId, all } of sides) {
        const before = await scriptCalls(bench);
        const round = await measure(bench, target, saleId, { connections: CONNECTIONS, requests });
        if (n === 0) continue;
        all.push(round);
        if (key === 'flashgate') looks += (await scriptCalls(bench)) - before;
        raw.push(line(target.name, round));
        bench.say(line(target.name, round));
      }
    }
  } finally {
    for (const { target } of sides) await target.stop();
  }
  const of = (key: (typeof COMPARED)[number], pick: (round: Round) => number) =>
    (sides.find((side) => side.key === key)?.all ?? []).map(pick);
  const ratio = (key: (typeof COMPARED)[number]) =>
    median(of(key, (round) => round.cpu.server)) / median(of('bare', (round) => round.cpu.server));
  const profiles = await inTurn(PROFILED, async (key) => {
    const press = { connections: CONNECTIONS, requests: bench.sizes.refusal.profiled, rounds: 1 };
    const { sold } = await profile(bench, DESIGNS[key], { sold: (target) => soldOut(bench, target) }, press);
    return { name: DESIGNS[key].name, summary: sold };
  });
  const looksPerSecond = looks / of('flashgate', ({ seconds }) => seconds).reduce((sum, each) => sum + each, 0);
  const goals: Goal[] = [
    {
      what: 'a refusal while sold out: server CPU per request, against a bare Fastify route with the same schema and answer',
      goal: '≤ 1.0 ×',
      measured: `${digits(ratio('flashgate'))} ×`,
      met: ratio('flashgate') <= 1,
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
          `${digits(ratio(key))} ×`,
        ]),
      ),
      `flashgate writes the answers of one turn of the event loop together (\`src/http/turn.ts\`), which spares both sides wake-ups; the bare route that does so too says what the rest of it costs: flashgate is ${digits(ratio('flashgate') / ratio('gathered'))} × that.`,
      '',
      `While it knew that nothing was left, flashgate’s process called a script of the gate ${digits(looksPerSecond)} times a second.`,
      '',
      'Where the time goes (`--cpu-prof`, main thread; the profiler itself costs some, and does not see the reading of sockets nor the threads that collect garbage). Self time in µs per request:',
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
      'refusal-ratio': digits(ratio('flashgate')),
      'refusal-per-core': digits(1e6 / median(of('flashgate', (round) => round.cpu.server))),
      'cores-per-million': digits(median(of('flashgate', (round) => round.cpu.server))),
      'redis-per-million': digits(median(of('flashgate', (round) => round.cpu.redis))),
      'looks-per-second': digits(looksPerSecond),
      'scale-table': scaleTable({
        looksPerSecond,
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

/** Script calls that Redis has run so far. */
async function scriptCalls({ redis }: Bench): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
}

type Costs = {
  /** Microseconds of CPU per refusal: of a latched sale, and of one that is not. */
  server: number;
  askingServer: number;
  askingRedis: number;
  /** Of one API process while a sale is latched. */
  looksPerSecond: number;
};

/** What the measured costs come to when buyers grow: cores by buyers per second. */
function scaleTable({ server, askingServer, askingRedis, looksPerSecond }: Costs) {
  const cores = (rate: number, us: number) => (rate * us) / 1e6;
  const rows = [20_000, 200_000, 1_000_000, 2_000_000, 20_000_000].map((rate) => [
    rate.toLocaleString('en-US'),
    digits(cores(rate, server)),
    digits(Math.max(1, Math.ceil(cores(rate, server))) * looksPerSecond),
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

function profileTable(profiles: { name: string; summary: Summary }[]): string[] {
  return profiles.flatMap(({ name, summary }) =>
    table(
      [`${name}: by function`, `µs of ${digits(summary.total)}`],
      ...summary.functions.slice(0, SHOWN).map(({ what, us }) => [code(what), digits(us)]),
    ),
  );
}

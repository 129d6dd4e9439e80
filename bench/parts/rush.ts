/** The same rush on every design: 100 units, 20,000 buyers, over few connections and over as many as the machine allows. */
import type { Bench, Goal, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import { freshly, line, rush, type Round } from '../lib/rounds.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { DESIGNS, type Design } from '../lib/targets.ts';

const KEYS = ['bare', 'redis', 'update', 'forUpdate', 'noLatch', 'flashgate', 'allCores'] as const;
type Key = (typeof KEYS)[number];
type Side = { key: Key; design: Design; few: Round[]; many: Round[] };

export async function sideBySide(bench: Bench): Promise<Section> {
  const { buyers, units, rounds, connections, manyRounds, manyConnections } = bench.sizes.rush;
  const sides: Side[] = KEYS.map((key) => ({ key, design: DESIGNS[key], few: [], many: [] }));
  const raw: string[] = [];
  const round = async (side: Side, over: 'few' | 'many') => {
    const { design } = side;
    const press =
      over === 'few' ? { connections, requests: buyers } : { connections: manyConnections, requests: manyConnections };
    const done = await freshly(bench, design, (target) => rush(bench, target, units, press));
    side[over].push(done);
    const said = line(`${design.name}, ${press.connections}`, done);
    raw.push(said);
    bench.say(said);
  };
  for (let n = 0; n < rounds; n += 1) for (const side of sides) await round(side, 'few');
  for (let n = 0; n < manyRounds; n += 1) for (const side of sides) await round(side, 'many');
  return section(bench, sides, raw);
}

function section({ sizes }: Bench, sides: Side[], raw: string[]): Section {
  const { buyers, units, connections, manyConnections } = sizes.rush;
  const of = (key: Key, pick: (round: Round) => number) =>
    median((sides.find((side) => side.key === key)?.few ?? []).map(pick));
  const ratio = of('flashgate', ({ rate }) => rate) / of('bare', ({ rate }) => rate);
  const goals: Goal[] = [
    {
      what: `${buyers.toLocaleString('en-US')} buyers, ${units} units, real HTTP: requests per second against the same load on a bare Fastify route`,
      goal: '≥ 0.9 ×',
      measured: `${digits(ratio)} ×`,
      met: ratio >= 0.9,
    },
  ];
  return {
    title: 'The same rush, side by side',
    goals,
    text: [
      ...sides.map(({ design }) => `- **${design.name}**: ${design.about}.`),
      '',
      `Over ${connections} kept-alive connections, as a storefront's servers would: ${buyers.toLocaleString('en-US')} buyers press once each, as fast as a connection is free.`,
      ...rushTable(sides, 'few'),
      `Over ${manyConnections.toLocaleString('en-US')} connections, as browsers would: one buyer each, all at the same moment.`,
      ...rushTable(sides, 'many'),
      `Each sale was recounted afterwards from what the stores say: no design oversold, and each sold exactly what buyers were told (${units} units; the bare route sells nothing).`,
      '',
    ],
    charts: [chart('rush-cpu.svg', 'CPU per request in the rush, server and stores, µs', sides, total)],
    figures: {
      'rush-ratio': digits(ratio),
      'rush-flashgate-cpu': digits(of('flashgate', total)),
      'rush-update-cpu': digits(of('update', total)),
      'rush-for-update-cpu': digits(of('forUpdate', total)),
      'rush-redis-cpu': digits(of('redis', total)),
      'update-postgres-us': digits(of('update', ({ cpu }) => cpu.postgres)),
      'update-server-us': digits(of('update', ({ cpu }) => cpu.server)),
      'for-update-postgres-us': digits(of('forUpdate', ({ cpu }) => cpu.postgres)),
    },
    raw,
  };
}

const total = ({ cpu }: Round) => cpu.server + cpu.worker + cpu.redis + cpu.postgres;

function rushTable(sides: Side[], over: 'few' | 'many'): string[] {
  const head = [
    'design',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'CPU µs per request: server',
    'Redis',
    'Postgres',
    'all',
    'sold',
  ];
  const rows = sides.map(({ design, [over]: rounds }) => {
    const of = (pick: (round: Round) => number) => withSpread(rounds.map(pick));
    const middle = (pick: (round: Round) => number) => digits(median(rounds.map(pick)));
    const sold = rounds.map(({ recount }) => recount?.sold);
    return [
      design.name,
      of(({ rate }) => rate),
      middle(({ latencyMs }) => latencyMs.p50),
      middle(({ latencyMs }) => latencyMs.p99),
      of(({ cpu }) => cpu.server),
      middle(({ cpu }) => cpu.redis),
      middle(({ cpu }) => cpu.postgres),
      middle(total),
      [...new Set(sold.map((units) => units ?? '–'))].join(', '),
    ];
  });
  return table(head, ...rows);
}

function chart(file: string, title: string, sides: Side[], pick: (round: Round) => number) {
  return { file, title, bars: sides.map(({ design, few }) => ({ name: design.name, value: median(few.map(pick)) })) };
}

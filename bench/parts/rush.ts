/** The same rush on every design: 100 units, 20,000 buyers, over few connections and over as many as the machine allows. */
import type { Bench, Goal, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import type { Summary } from '../lib/profile.ts';
import { profile } from '../lib/profiled.ts';
import { freshly, line, measure, rush, type Round } from '../lib/rounds.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { DESIGNS, type Design, type Target } from '../lib/targets.ts';

/** What is compared with each other lies next to each other: a shared machine drifts from minute to minute. */
const KEYS = ['bare', 'flashgate', 'allCores', 'noLatch', 'redis', 'update', 'forUpdate'] as const;
type Key = (typeof KEYS)[number];
type Profiles = { bare: Summary; refused: Summary; rush: Summary };
type Side = { key: Key; design: Design; few: Round[]; many: Round[] };

export async function sideBySide(bench: Bench): Promise<Section> {
  const { buyers, units, rounds, againForMs, connections, manyRounds, manyConnections } = bench.sizes.rush;
  const sides: Side[] = KEYS.map((key) => ({ key, design: DESIGNS[key], few: [], many: [] }));
  const raw: string[] = [];
  const round = async (side: Side, over: 'few' | 'many') => {
    const { design } = side;
    const press =
      over === 'few' ? { connections, requests: buyers } : { connections: manyConnections, requests: manyConnections };
    await freshly(bench, design, async (target) => {
      const began = performance.now();
      do {
        const done = await rush(bench, target, units, press);
        side[over].push(done);
        const said = line(`${design.name}, ${press.connections}`, done);
        raw.push(said);
        bench.say(said);
      } while (over === 'few' && performance.now() - began < againForMs);
    });
  };
  const there = (n: number) => (n % 2 === 0 ? sides : sides.toReversed()); // and back: A B, B A
  for (let n = 0; n < rounds; n += 1) for (const side of there(n)) await round(side, 'few');
  for (let n = 0; n < manyRounds; n += 1) for (const side of there(n)) await round(side, 'many');
  return section(bench, sides, await profiles(bench), raw);
}

/** What selling costs: the same load on the bare route, on a sale that is sold out, and on one that is sold. */
async function profiles(bench: Bench): Promise<Profiles> {
  const { buyers, units, connections, profiled } = bench.sizes.rush;
  const press = { connections, requests: buyers, rounds: profiled };
  const rushed = (target: Target) => target.newSale(units);
  const refused = async (target: Target) => {
    const saleId = await target.newSale(units);
    await measure(bench, target, saleId, { connections, requests: 10 * units });
    return saleId;
  };
  const { bare } = await profile(bench, DESIGNS.bare, { bare: rushed }, press);
  return { bare, ...(await profile(bench, DESIGNS.flashgate, { refused, rush: rushed }, press)) };
}

function section({ sizes }: Bench, sides: Side[], profiles: Profiles, raw: string[]): Section {
  const { buyers, units, connections, manyConnections } = sizes.rush;
  const of = (key: Key, pick: (round: Round) => number, over: 'few' | 'many' = 'few') =>
    median((sides.find((side) => side.key === key)?.[over] ?? []).map(pick));
  const rateOf = (key: Key, over: 'few' | 'many') => of(key, ({ rate }) => rate, over);
  const ratio = rateOf('flashgate', 'few') / rateOf('bare', 'few');
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
      `Over ${connections} kept-alive connections, as a storefront's servers would: ${buyers.toLocaleString('en-US')} buyers press once each, as fast as a connection is free; again and again for ${digits(sizes.rush.againForMs / 1000)} s of each round.`,
      ...rushTable(sides, 'few'),
      `Where the time goes (\`--cpu-prof\`, main thread, ${sizes.rush.profiled} rushes; the profiler itself costs some, and does not see the reading of sockets), by the package that a sample belongs to. “Sold out” is the same load by the same process on a sale that was sold before, so the rush beside it says what selling ${units} units costs ${buyers.toLocaleString('en-US')} presses: sends to the queue, the asking before the latch closes, and answers that wait for the queue while fewer connections press. The worker, the queue and Postgres work at the same time on the same two cores.`,
      ...profileTable(profiles),
      `Over ${manyConnections.toLocaleString('en-US')} connections, as browsers would: one buyer each, all at the same moment. The CPU is with the opening of the connections, the rate without.`,
      ...rushTable(sides, 'many'),
      `Here flashgate answers ${digits(rateOf('flashgate', 'many') / rateOf('bare', 'many'))} × the bare route’s requests per second: one turn of the event loop reads thousands of requests and lasts longer than a latch period, so the reply that would renew what the process knows is read after them, and who came later waits for it, in memory. With a process per core two such loops share two cores with the load.`,
      '',
      `Each sale was recounted afterwards from what the stores say: no design oversold, and each sold what buyers were told (column “sold”; the bare route sells nothing).`,
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

const SHOWN = 8;

/** In microseconds per request, what differs most first. */
function profileTable({ bare, refused, rush: sold }: Profiles): string[] {
  const at = ({ parts }: Summary, what: string) => parts.find((part) => part.what === what)?.us ?? 0;
  const all = [...new Set([bare, refused, sold].flatMap(({ parts }) => parts.map(({ what }) => what)))];
  const most = all.sort((a, b) => at(sold, b) - at(sold, a)).slice(0, SHOWN);
  const rest = (summary: Summary) => summary.total - most.reduce((sum, what) => sum + at(summary, what), 0);
  const row = (what: string, us: (summary: Summary) => number) => [
    what,
    ...[bare, refused, sold].map((s) => digits(us(s))),
  ];
  return table(
    ['µs per request', 'bare Fastify route', 'flashgate, sold out', 'flashgate, the rush'],
    ...most.map((what) => row(what, (summary) => at(summary, what))),
    row('everything else', rest),
    row('all', ({ total: all }) => all),
  );
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

/** Whether a refusal costs the same however much was sold and however many ask; and what holds and refusals cost in memory. */
import { randomUUID } from 'node:crypto';
import type { Bench, Goal, Section } from '../bench.ts';
import { readConfig } from '../../src/config.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { formatHold } from '../../src/domain/reservation.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { script } from '../../src/gate/scripts.ts';
import { createSale } from '../../src/ledger/sales.ts';
import { residentBytes } from '../lib/cpu.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, warmUp, type Round } from '../lib/rounds.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { DESIGNS, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
const CHUNK = 500;
/** More than this much dearer at one size than at another is not flat. */
const FLAT = 1.25;
const ROUNDS = 5;
/** In each of which a third of a crowd asks. */
const CROWD_ROUNDS = 3;
/** Before the first counted round: a sale that a process has not seen yet is looked up, and its holders are fetched. */
const UNCOUNTED = 500;

/** A sale all of whose units are held, and what it cost to refuse others. */
type Side = { name: string; target: Target; saleId: string; requests: number; rounds: Round[] };
type BySize = Side & { units: number; bytesPerHold: number };
type ByBuyers = Side & { buyers: number };
type Measured = { bySize: BySize[]; asking: Side; byBuyers: ByBuyers[]; memory: { before: number; after: number } };

/** The part `flat`: CPU in microseconds per refusal, memory in bytes. */
export async function flatness(bench: Bench): Promise<Section> {
  const { units: sizes, requests, buyers: crowds } = bench.sizes.flat;
  const raw: string[] = [];
  const target = await DESIGNS.flashgate.start(bench);
  const noLatch = await DESIGNS.noLatch.start(bench);
  try {
    for (const each of [target, noLatch]) await warmUp(bench, each, CONNECTIONS, Math.min(2_000, requests));
    const side = async (name: string, of: Target, units: number, asked = requests): Promise<Side> => ({
      ...{ name, target: of, saleId: await loaded(bench, units), requests: asked, rounds: [] },
    });
    const bySize: BySize[] = [];
    for (const units of sizes) {
      const before = await usedMemory(bench);
      const own = await side(`${units} units`, target, units);
      bySize.push({ ...own, units, bytesPerHold: ((await usedMemory(bench)) - before) / units });
    }
    const asking = await side(`${UNITS} units, no latch`, noLatch, UNITS);
    await inTurn(bench, [...bySize, asking], { rounds: ROUNDS, uncounted: requests }, raw); // the first compiles, too
    const byBuyers: ByBuyers[] = [];
    for (const buyers of crowds) {
      byBuyers.push({ ...(await side(`${buyers} buyers`, target, UNITS, Math.ceil(buyers / CROWD_ROUNDS))), buyers });
    }
    const before = residentBytes(target.pid);
    await inTurn(bench, byBuyers, { rounds: CROWD_ROUNDS, uncounted: UNCOUNTED }, raw);
    const memory = { before, after: residentBytes(target.pid) };
    return section(bench, { bySize, asking, byBuyers, memory }, raw);
  } finally {
    await target.stop();
    await noLatch.stop();
  }
}

/** Of the sales that are pressed at without a look at their size. */
const UNITS = 100;

/** `uncounted`: refusals of each sale before the first round. */
type Turns = { rounds: number; uncounted: number };

/** All are loaded first and asked in turn, so that what else the machine does falls on each alike; then removed. */
async function inTurn(bench: Bench, sides: Side[], turns: Turns, raw: string[]): Promise<void> {
  for (const { target, saleId } of sides) {
    await measure(bench, target, saleId, { connections: CONNECTIONS, requests: turns.uncounted });
  }
  for (let n = 0; n < turns.rounds; n += 1) {
    for (const { name, target, saleId, requests, rounds } of sides) {
      const round = await measure(bench, target, saleId, { connections: CONNECTIONS, requests });
      rounds.push(round);
      raw.push(`${line(name, round)}  API memory ${mebibytes(residentBytes(target.pid))} MiB`);
      bench.say(raw.at(-1) ?? '');
    }
  }
  for (const { saleId } of sides) await unload(bench, saleId);
}

/** Medians of microseconds of CPU per refusal. */
const server = ({ rounds }: Pick<Side, 'rounds'>) => median(rounds.map(({ cpu }) => cpu.server));
const redis = ({ rounds }: Pick<Side, 'rounds'>) => median(rounds.map(({ cpu }) => cpu.redis));
const cost = (side: Pick<Side, 'rounds'>) => server(side) + redis(side);

/** By how much the dearest costs more than the cheapest, whichever they are: 1 is flat. */
export function growth(sides: Pick<Side, 'rounds'>[]): number {
  const costs = sides.map(cost);
  return Math.max(...costs) / Math.min(...costs);
}

const mebibytes = (bytes: number) => digits(bytes / 2 ** 20);

async function usedMemory({ redis }: Bench): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

/** A sale of which every unit is held: written to the gate as a rebuild does it, and in the ledger only by name. */
async function loaded({ pool, redis }: Bench, units: number): Promise<string> {
  const saleId = `flat-${randomUUID().slice(0, 8)}`;
  const now = Date.now();
  const [startsAt, endsAt] = [now - 1000, now + 86_400_000];
  await createSale(pool, saleId, {
    ...{ name: 'flat', total: units, holdSeconds: 3600, maxPerReservation: 1, price: { amount: 100, currency: 'EUR' } },
    ...{ startsAt: new Date(startsAt).toISOString(), endsAt: new Date(endsAt).toISOString() },
  });
  const open = (...args: (string | number)[]) => script('open').run(redis, gateKeys(saleId), args);
  await open('begin', 1);
  for (let n = 0; n < units; n += CHUNK) {
    const holds = Array.from({ length: Math.min(CHUNK, units - n) }, (_, m) => holdOf(saleId, `holder-${n + m}`, now));
    await open('chunk', 1, ...holds.flatMap((hold) => [hold.userId, formatHold(hold)]));
  }
  const answer = await open('open', 1, 1, 'open', startsAt, endsAt, units, 1, 3600, 100, 'EUR');
  if (answer !== 'opened') throw new Error(`the gate did not open: ${String(answer)}`);
  return saleId;
}

const holdOf = (saleId: string, userId: string, now: number): Hold => ({
  ...{ reservationId: randomUUID(), saleId, userId, qty: 1, amount: 100, currency: 'EUR' },
  ...{ reservedAt: now, expiresAt: now + 3_600_000 },
});

/** In the foreground: Redis would be freeing a million holds for seconds, in measurements that are none of their concern. */
async function unload({ pool, redis }: Bench, saleId: string): Promise<void> {
  await redis.del(...gateKeys(saleId));
  await pool.query('delete from sale_stock where sale_id = $1', [saleId]);
  await pool.query('delete from sales where sale_id = $1', [saleId]);
}

function section(bench: Bench, { bySize, asking, byBuyers, memory }: Measured, raw: string[]): Section {
  const { LATCH_HOLDERS: bound, GATE_PENDING: pending } = readConfig(bench.env);
  const latched = bySize.filter(({ units }) => units <= bound);
  const above = bySize.filter(({ units }) => units > bound).at(-1);
  const what = 'cost of a refusal (API and Redis CPU)';
  const flat = (where: string, ratio: number, goal = `flat (≤ ${FLAT} ×)`): Goal => ({
    ...{ what: `${what}: ${where}`, goal, measured: `${digits(ratio)} ×`, met: ratio <= FLAT },
  });
  const [byUnits, byCrowd] = [growth(latched), growth(byBuyers)];
  const ofAsking = above === undefined ? Number.NaN : cost(above) / cost(asking);
  return {
    title: 'Flat',
    goals: [
      flat(`at ${spanOf(latched.map(({ units }) => units))} units, the dearest against the cheapest`, byUnits),
      flat(`at ${spanOf(byBuyers.map(({ buyers }) => buyers))} buyers, the dearest against the cheapest`, byCrowd),
      ...(above === undefined
        ? []
        : [
            flat(
              `with ${spanOf([above.units])} holders, above the bound, against a process that never latches`,
              ofAsking,
              `one batched gate share (≤ ${FLAT} ×)`,
            ),
          ]),
    ],
    text: [
      `One API process; ${spanOf([bench.sizes.flat.requests])} refusals of sales whose units are all held, ${ROUNDS} rounds in turn, after one that is not counted. Above ${spanOf([bound])} holders (\`LATCH_HOLDERS\`) a process does not latch: each refusal is a share of one batched call, as it is everywhere in a process with \`LATCH_MS=0\`, the last row.`,
      ...table(
        ['units, all held', 'API CPU µs per refusal', 'Redis CPU µs', 'Redis bytes per hold'],
        ...bySize.map((side) => [spanOf([side.units]), ...costs(side), digits(side.bytesPerHold)]),
        [asking.name, ...costs(asking), ''],
      ),
      `A sale of ${UNITS} units, sold out, for each of as many different buyers as below, once each, a third of them in each of ${CROWD_ROUNDS} rounds in turn. The API process had ${mebibytes(memory.before)} MiB before them and ${mebibytes(memory.after)} MiB after them:`,
      ...table(
        ['buyers', 'API CPU µs per refusal', 'Redis CPU µs'],
        ...byBuyers.map((side) => [spanOf([side.buyers]), ...costs(side)]),
      ),
    ],
    figures: {
      'bytes-per-hold': digits(bySize.at(-1)?.bytesPerHold ?? Number.NaN),
      'flat-units': digits(byUnits),
      'flat-buyers': digits(byCrowd),
      ...(above && {
        'above-bound-redis-us': digits(redis(above)),
        'above-bound-us': digits(server(above)),
        'above-bound-ratio': digits(ofAsking),
        'pending-ms': digits((server(above) * pending) / 1000),
      }),
    },
    raw,
  };
}

const costs = ({ rounds }: Side) => [
  withSpread(rounds.map(({ cpu }) => cpu.server)),
  withSpread(rounds.map(({ cpu }) => cpu.redis)),
];

const spanOf = (values: number[]) => values.map((value) => value.toLocaleString('en-US')).join(', ');

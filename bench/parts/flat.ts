/** Whether a refusal costs the same however much was sold and however many ask; and what holds and refusals cost in memory. */
import { randomUUID } from 'node:crypto';
import type { Bench, Goal, Section } from '../bench.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { formatHold } from '../../src/domain/reservation.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { script } from '../../src/gate/scripts.ts';
import { createSale } from '../../src/ledger/sales.ts';
import { residentBytes } from '../lib/cpu.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, warmUp, type Round } from '../lib/rounds.ts';
import { digits } from '../lib/stats.ts';
import { DESIGNS, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
const CHUNK = 500;
/** More than this much dearer at the largest size than at the smallest is not flat. */
const FLAT = 1.25;
const ROUNDS = 3;

type BySize = { units: number; bytesPerHold: number; round: Round };
type ByBuyers = { buyers: number; round: Round; memory: number };

export async function flatness(bench: Bench): Promise<Section> {
  const target = await DESIGNS.flashgate.start(bench);
  const raw: string[] = [];
  const tell = (said: string) => {
    raw.push(said);
    bench.say(said);
  };
  try {
    await warmUp(bench, target, CONNECTIONS, 2_000);
    const bySize = await atEachSize(bench, target, tell);
    const before = residentBytes(target.pid);
    const byBuyers: ByBuyers[] = [];
    for (const buyers of bench.sizes.flat.buyers) {
      const saleId = await loaded(bench, 100);
      const round = await measure(bench, target, saleId, { connections: CONNECTIONS, requests: buyers });
      byBuyers.push({ buyers, round, memory: residentBytes(target.pid) });
      tell(`${line(`${buyers} buyers`, round)}  API memory ${mebibytes(residentBytes(target.pid))} MiB`);
      await unload(bench, saleId);
    }
    return section(bench, bySize, before, byBuyers, raw);
  } finally {
    await target.stop();
  }
}

/** All sizes are loaded first and asked in turn, so that what else the machine does falls on each alike. */
async function atEachSize(bench: Bench, target: Target, tell: (said: string) => void): Promise<BySize[]> {
  const sales: { units: number; saleId: string; bytesPerHold: number; rounds: Round[] }[] = [];
  for (const units of bench.sizes.flat.units) {
    const before = await usedMemory(bench);
    const saleId = await loaded(bench, units);
    sales.push({ units, saleId, bytesPerHold: ((await usedMemory(bench)) - before) / units, rounds: [] });
  }
  const press = { connections: CONNECTIONS, requests: bench.sizes.flat.requests };
  for (let n = 0; n < ROUNDS; n += 1) {
    for (const { units, saleId, rounds } of sales) {
      if (n === 0) await measure(bench, target, saleId, { connections: CONNECTIONS, requests: 500 });
      const round = await measure(bench, target, saleId, press);
      rounds.push(round);
      tell(line(`${units} units`, round));
    }
  }
  for (const { saleId } of sales) await unload(bench, saleId);
  return sales.map(({ units, bytesPerHold, rounds }) => {
    const byCost = [...rounds].sort((a, b) => a.cpu.server - b.cpu.server);
    const round = byCost[Math.floor(byCost.length / 2)];
    if (!round) throw new Error('nothing was measured');
    return { units, bytesPerHold, round };
  });
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

async function unload({ pool, redis }: Bench, saleId: string): Promise<void> {
  await redis.unlink(...gateKeys(saleId));
  await pool.query('delete from sale_stock where sale_id = $1', [saleId]);
  await pool.query('delete from sales where sale_id = $1', [saleId]);
}

function section(bench: Bench, bySize: BySize[], before: number, byBuyers: ByBuyers[], raw: string[]): Section {
  const latched = bySize.filter(({ units }) => units <= 20_000);
  const cost = ({ round }: { round: Round }) => round.cpu.server + round.cpu.redis;
  const growth = (of: { round: Round }[]) => {
    const [first, last] = [of[0], of.at(-1)];
    return first && last ? cost(last) / cost(first) : Number.NaN;
  };
  const [byUnits, byCrowd] = [growth(latched), growth(byBuyers)];
  const what = 'cost of a refusal (API and Redis CPU)';
  const goals: Goal[] = [
    {
      what: `${what}: at ${spanOf(latched.map(({ units }) => units))} units`,
      goal: `flat (≤ ${FLAT} ×)`,
      measured: `${digits(byUnits)} ×`,
      met: byUnits <= FLAT,
    },
    {
      what: `${what}: at ${spanOf(byBuyers.map(({ buyers }) => buyers))} buyers`,
      goal: `flat (≤ ${FLAT} ×)`,
      measured: `${digits(byCrowd)} ×`,
      met: byCrowd <= FLAT,
    },
  ];
  return {
    title: 'Flat',
    goals,
    text: [
      `One API process; ${bench.sizes.flat.requests.toLocaleString('en-US')} refusals of sales whose units are all held, ${ROUNDS} rounds in turn, the middle one shown. Above 20,000 holders (\`LATCH_HOLDERS\`) a process does not latch: each refusal is a share of one batched call.`,
      ...table(
        ['units, all held', 'API CPU µs per refusal', 'Redis CPU µs', 'Redis bytes per hold'],
        ...bySize.map(({ units, bytesPerHold, round }) => [
          units.toLocaleString('en-US'),
          digits(round.cpu.server),
          digits(round.cpu.redis),
          digits(bytesPerHold),
        ]),
      ),
      `A sale of 100 units, sold out, and as many different buyers as below, once each, by the same API process one crowd after the other (its memory before: ${mebibytes(before)} MiB):`,
      ...table(
        ['buyers', 'API CPU µs per refusal', 'Redis CPU µs', 'API memory afterwards, MiB'],
        ...byBuyers.map(({ buyers, round, memory }) => [
          buyers.toLocaleString('en-US'),
          digits(round.cpu.server),
          digits(round.cpu.redis),
          mebibytes(memory),
        ]),
      ),
    ],
    figures: {
      'bytes-per-hold': digits(bySize.at(-1)?.bytesPerHold ?? Number.NaN),
      'flat-units': digits(byUnits),
      'flat-buyers': digits(byCrowd),
      'above-bound-redis-us': digits(bySize.at(-1)?.round.cpu.redis ?? Number.NaN),
      'above-bound-us': digits(bySize.at(-1)?.round.cpu.server ?? Number.NaN),
    },
    raw,
  };
}

const spanOf = (values: number[]) => values.map((value) => value.toLocaleString('en-US')).join(' and ');

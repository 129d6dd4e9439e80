/** The gate alone: decisions per second of one Redis core, by batch, sold out and all winning, beside the plain script. */
import { createHash, randomUUID } from 'node:crypto';
import type { Bench, Goal, Section } from '../bench.ts';
import { readConfig } from '../../src/config.ts';
import { reserveArgs } from '../../src/gate/gate.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { script } from '../../src/gate/scripts.ts';
import { watch } from '../lib/cpu.ts';
import { table } from '../lib/markdown.ts';
import { encode, sendAll } from '../lib/raw-redis.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { plainArgs, plainKeys, RESERVE } from '../peers/redis-script.ts';

/** Buyers under way, so that Redis seldom waits for the next call; in large batches it does now and then. */
const UNDER_WAY = 1024;
const KINDS = ['sold out', 'winning'] as const;
type Kind = (typeof KINDS)[number];
/** `rate` by the clock, in decisions per second; `cpuUs` of Redis per decision. */
type Measured = { rate: number; cpuUs: number };
/** A script and how many buyers one call of it decides. */
type Way = { name: string; short: string; batch: number; sale: (bench: Bench, units: number) => Promise<Sale> };
/** A sale that the script knows: its calls, encoded, and what is in every reply to one exactly once. */
type Sale = {
  call: (n: number) => Buffer;
  marker: (kind: Kind) => string;
  keys: readonly string[];
  stock: string;
  holds: string;
};

const PLAIN: Way = { name: 'the plain design’s script, 1', short: 'plain script, 1', batch: 1, sale: plainSale };
const inBatches = (batch: number): Way => ({
  ...{ name: `\`reserve.lua\`, ${batch}`, short: String(batch), batch },
  sale: (bench, units) => gateSale(bench, units, batch),
});

/** The part `gate`. */
export async function gateAlone(bench: Bench): Promise<Section> {
  const { batches, rounds, units, decisions } = bench.sizes.gate;
  const shipped = readConfig(bench.env).GATE_BATCH;
  const sizes = [...new Set([...batches, shipped])].sort((a, b) => a - b);
  const sides = [PLAIN, ...sizes.map(inBatches)].map((way) => ({
    way,
    measured: { 'sold out': [] as Measured[], winning: [] as Measured[] },
  }));
  const raw: string[] = [];
  for (let n = 0; n < rounds; n += 1) {
    for (const { way, measured } of sides) {
      for (const kind of KINDS) {
        const one = await once(bench, kind, way);
        measured[kind].push(one);
        raw.push(
          `${`${way.name}, ${kind}`.padEnd(40)} ${digits(one.rate)} decisions/s  Redis CPU µs/decision ${one.cpuUs.toFixed(4)}`,
        );
        bench.say(raw.at(-1) ?? '');
      }
    }
  }
  const [usual, largest] = [inBatches(shipped), inBatches(Math.max(...sizes))];
  const where = await whereTimeGoes(bench, usual);
  const oneSale = await once(bench, 'winning', usual, Infinity);
  raw.push(`all winners in one sale: Redis CPU µs/decision ${oneSale.cpuUs.toFixed(4)}`);
  const us = (kind: Kind, { name }: Way) =>
    median((sides.find(({ way }) => way.name === name)?.measured[kind] ?? []).map(({ cpuUs }) => cpuUs));
  const perCore = (kind: Kind, way: Way) => 1e6 / us(kind, way);
  /** For how many milliseconds a full call of winners occupies Redis. */
  const fullCall = (way: Way) => digits((us('winning', way) * way.batch) / 1000);
  return {
    title: 'The gate alone',
    goals: goals(perCore, usual, largest),
    text: [
      `Scripts on one Redis, calls made ready before the clock starts, up to ${UNDER_WAY} buyers under way (at least two calls); ${rounds} rounds. Decisions per second of Redis' CPU are what one core would do; the rate by the clock is what it did on this machine, with everything else running. The plain design's script (\`bench/peers/redis-script.ts\`) decides for one buyer and keeps a counter and a hash; so many of its calls under way are kinder to it than any client is; \`reserve.lua\` with one buyer per call is what flashgate costs when nothing can be gathered. As shipped, a call takes up to ${shipped} buyers (\`GATE_BATCH\`). Winners fill sales of ${units.toLocaleString('en-US')} units one after the other, and stay marked as not yet in the queue, which a queue that keeps up would not leave them: their sorted set grows as large as the hash of holds.`,
      ...table(
        [
          'script, buyers per call',
          'sold out: per CPU second',
          'Redis CPU µs',
          'by the clock',
          'winning: per CPU second',
          'Redis CPU µs',
          'by the clock',
        ],
        ...sides.map(({ way, measured }) => [
          way.name,
          ...KINDS.flatMap((kind) => [
            digits(perCore(kind, way)),
            withSpread(measured[kind].map(({ cpuUs }) => cpuUs)),
            digits(median(measured[kind].map(({ rate }) => rate))),
          ]),
        ]),
      ),
      `A call occupies Redis as a whole: with ${shipped} winners for ${fullCall(usual)} ms, with ${largest.batch} for ${fullCall(largest)} ms. With all ${decisions.toLocaleString('en-US')} winners in one sale, whose keys no cache of the processor holds, a win costs ${digits(oneSale.cpuUs)} µs.`,
      '',
      `Where the time of a win goes, by Redis' own \`INFO commandstats\` (${shipped} buyers per call; what Redis does outside of commands, such as reading the call and writing the append-only file, is not in it):`,
      ...table(['', 'µs per win'], ...where.map(([name, spent]) => [name, spent.toFixed(2)])),
    ],
    charts: [
      {
        file: 'gate.svg',
        title: 'Decisions per second of Redis CPU, by buyers per call',
        bars: KINDS.flatMap((kind) =>
          sides.map(({ way }) => ({ name: `${kind}, ${way.short}`, value: perCore(kind, way) })),
        ),
      },
    ],
    figures: {
      'gate-sold-out': digits(perCore('sold out', usual)),
      'gate-winning': digits(perCore('winning', usual)),
      'gate-sold-out-largest': digits(perCore('sold out', largest)),
      'gate-winning-largest': digits(perCore('winning', largest)),
      'gate-call-ms': fullCall(usual),
      'gate-call-largest-ms': fullCall(largest),
    },
    raw,
  };
}

function goals(perCore: (kind: Kind, way: Way) => number, usual: Way, largest: Way): Goal[] {
  const what = `gate decisions on one Redis core, batched as shipped (${usual.batch} per call)`;
  const reaches = (kind: Kind, goal: number) => ({
    ...{ what: `${what}: ${kind}`, goal: `≥ ${goal.toLocaleString('en-US')} per second` },
    measured: `${digits(perCore(kind, usual))} (${digits(perCore(kind, largest))} with ${largest.batch} per call)`,
    met: perCore(kind, usual) >= goal,
  });
  const times = (way: Way) => perCore('sold out', usual) / perCore('sold out', way);
  return [
    reaches('sold out', 1_000_000),
    reaches('winning', 400_000),
    {
      what: `${what}: sold out, against one call of the same script per request`,
      goal: '≥ 20 ×',
      measured: `${digits(times(inBatches(1)))} × (${digits(times(PLAIN))} × the plain design's leaner script)`,
      met: times(inBatches(1)) >= 20,
    },
  ];
}

/** Microseconds per win of the commands that `reserve.lua` calls, of the script itself, and of all of it. */
async function whereTimeGoes(bench: Bench, way: Way): Promise<[name: string, us: number][]> {
  const { redis, sizes } = bench;
  await redis.config('RESETSTAT');
  await once(bench, 'winning', way);
  const stats = [...(await redis.info('commandstats')).matchAll(/^cmdstat_(\w+):calls=\d+,usec=(\d+)/gm)];
  const wins = Math.round(sizes.gate.decisions / way.batch) * way.batch;
  const us = (wanted: string) => Number(stats.find(([, name]) => name === wanted)?.[2] ?? 0) / wins;
  const called = ['sadd', 'hset', 'zadd', 'smismember', 'hincrby', 'decrby', 'hmget', 'get', 'type', 'time', 'exists'];
  const commands = called.map((name): [string, number] => [name.toUpperCase(), us(name)]);
  const inCommands = commands.reduce((sum, [, spent]) => sum + spent, 0);
  return [
    ['the script call, all of it', us('evalsha')],
    ['Lua, its arguments and its reply', us('evalsha') - inCommands],
    ...commands.filter(([, spent]) => spent >= 0.005),
  ];
}

/**
 * @param unitsPerSale winners fill sales of so many units, one after the other
 * @throws {Error} when a sale does not have exactly the winners that it should
 */
async function once(
  bench: Bench,
  kind: Kind,
  { name, batch, sale }: Way,
  unitsPerSale = bench.sizes.gate.units,
): Promise<Measured> {
  const { redis, env, sizes, pids } = bench;
  const calls = Math.max(1, Math.round((batch === 1 ? sizes.gate.perRequest : sizes.gate.decisions) / batch));
  const perSale = kind === 'winning' ? Math.min(calls, Math.ceil(unitsPerSale / batch)) : calls;
  const sales: (Sale & { units: number })[] = [];
  const encoded: Buffer[] = [];
  for (let from = 0; from < calls; from += perSale) {
    const ofThis = Math.min(perSale, calls - from);
    const units = kind === 'winning' ? ofThis * batch : 0;
    const one = await sale(bench, units);
    sales.push({ ...one, units });
    for (let n = 0; n < (kind === 'winning' ? ofThis : Math.min(calls, 64)); n += 1) encoded.push(one.call(n));
  }
  const spent = watch({ redis: pids.redis });
  const seconds = await sendAll(env['REDIS_URL'] ?? '', {
    calls,
    call: (n) => encoded[n % encoded.length] ?? Buffer.alloc(0),
    inFlight: Math.max(2, Math.floor(UNDER_WAY / batch)),
    marker: sales[0]?.marker(kind) ?? '',
  });
  const cpuUs = (spent().redis * 1000) / (calls * batch);
  for (const { units, keys, ...of } of sales) {
    const [stock, holds] = [await redis.get(of.stock), await redis.hlen(of.holds)];
    if (holds !== units || stock !== '0') {
      throw new Error(`${name}, ${kind}: ${holds} holds and a stock of ${String(stock)}, not ${units} and 0`);
    }
    await redis.del(...keys); // in the foreground: freeing it is no part of the next measurement
  }
  return { rate: (calls * batch) / seconds, cpuUs };
}

const newSaleId = () => `gate-${randomUUID().slice(0, 8)}`;
const buyer = (n: number) => `buyer-${n}`;

async function plainSale({ redis }: Bench, units: number): Promise<Sale> {
  const keys = plainKeys(newSaleId());
  await redis.set(keys[0], units);
  await redis.script('LOAD', RESERVE);
  const sha1 = createHash('sha1').update(RESERVE).digest('hex');
  return {
    call: (n) => encode(['EVALSHA', sha1, keys.length, ...keys, ...plainArgs(buyer(n), 1)]),
    marker: (kind) => (kind === 'sold out' ? 'sold_out' : '$2\r\nok\r\n'),
    ...{ keys, stock: keys[0], holds: keys[1] },
  };
}

/** Echoed by each call of `reserve.lua`. */
const BATCH_ID = '00000000-0000-4000-8000-00000000beef';

async function gateSale({ redis }: Bench, units: number, batch: number): Promise<Sale> {
  const keys = gateKeys(newSaleId());
  const now = Date.now();
  const settings = [1, 'open', now - 1000, now + 86_400_000, units, 1, 600, 49_900, 'EUR'];
  await script('open').run(redis, keys, ['begin', 1]);
  const answer = await script('open').run(redis, keys, ['open', 1, ...settings]);
  if (answer !== 'opened') throw new Error(`the gate did not open: ${String(answer)}`);
  const asking = (n: number, qty: number) => ({ userId: buyer(n), reservationId: randomUUID(), qty });
  const reserve = script('reserve');
  await reserve.run(redis, keys, reserveArgs('load', [asking(0, 2)])); // over the limit: loads the script
  const call = (n: number) => {
    const buyers = Array.from({ length: batch }, (_, m) => asking(n * batch + m, 1));
    return encode(['EVALSHA', reserve.sha1, keys.length, ...keys, ...reserveArgs(BATCH_ID, buyers)]);
  };
  return { call, marker: () => BATCH_ID, keys, stock: keys[0], holds: keys[2] };
}

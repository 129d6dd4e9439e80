/** The gate alone: decisions per second of one Redis core, by batch, sold out and all winning. */
import { randomUUID } from 'node:crypto';
import type { Bench, Goal, Section } from '../bench.ts';
import { reserveArgs } from '../../src/gate/gate.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { script } from '../../src/gate/scripts.ts';
import { watch } from '../lib/cpu.ts';
import { table } from '../lib/markdown.ts';
import { encode, sendAll } from '../lib/raw-redis.ts';
import { digits, median, withSpread } from '../lib/stats.ts';

const MARKER = '00000000-0000-4000-8000-00000000beef';
/** Enough for Redis never to wait for the next call. */
const UNDER_WAY = 1024;
const PROFILED_BATCH = 256;
type Kind = 'sold out' | 'winning';
type Measured = { rate: number; cpuUs: number };

export async function gateAlone(bench: Bench): Promise<Section> {
  const { batches, rounds } = bench.sizes.gate;
  const kinds: Kind[] = ['sold out', 'winning'];
  const all = new Map<string, Measured[]>();
  const raw: string[] = [];
  for (let n = 0; n < rounds; n += 1) {
    for (const batch of batches) {
      for (const kind of kinds) {
        const measured = await once(bench, kind, batch);
        const name = `${kind} ${batch}`;
        all.set(name, [...(all.get(name) ?? []), measured]);
        raw.push(
          `${name.padEnd(16)} ${digits(measured.rate)} decisions/s  Redis CPU µs/decision ${measured.cpuUs.toFixed(4)}`,
        );
        bench.say(raw.at(-1) ?? '');
      }
    }
  }
  const where = await whereTimeGoes(bench);
  const of = (kind: Kind, batch: number) => all.get(`${kind} ${batch}`) ?? [];
  const perCore = (kind: Kind, batch: number) => 1e6 / median(of(kind, batch).map(({ cpuUs }) => cpuUs));
  const best = (kind: Kind) => Math.max(...batches.map((batch) => perCore(kind, batch)));
  const [soldOut, winning] = [best('sold out'), best('winning')];
  const times = soldOut / perCore('sold out', 1);
  return {
    title: 'The gate alone',
    goals: goals(soldOut, winning, times),
    text: [
      `\`reserve.lua\` on one Redis, calls made ready before the clock starts, up to ${UNDER_WAY} buyers under way (at least two calls); ${rounds} rounds. Decisions per second of Redis' CPU are what one core would do; the rate by the clock is what it did on this machine, with everything else running. The script call of each plain request is the batch of 1.`,
      ...table(
        [
          'buyers per call',
          'sold out: per CPU second',
          'Redis CPU µs',
          'by the clock',
          'winning: per CPU second',
          'Redis CPU µs',
          'by the clock',
        ],
        ...batches.map((batch) => [
          String(batch),
          ...kinds.flatMap((kind) => [
            digits(perCore(kind, batch)),
            withSpread(of(kind, batch).map(({ cpuUs }) => cpuUs)),
            digits(median(of(kind, batch).map(({ rate }) => rate))),
          ]),
        ]),
      ),
      `Where the time of a win goes, by Redis' own \`INFO commandstats\` (${PROFILED_BATCH} buyers per call; what Redis does outside of commands, such as reading the call and writing the append-only file, is not in it):`,
      ...table(['', 'µs per win'], ...where.map(([name, us]) => [name, us.toFixed(2)])),
    ],
    charts: [
      {
        file: 'gate.svg',
        title: 'Decisions per second of Redis CPU, by buyers per call',
        bars: kinds.flatMap((kind) =>
          batches.map((batch) => ({ name: `${kind}, ${batch}`, value: perCore(kind, batch) })),
        ),
      },
    ],
    figures: {
      'gate-sold-out': digits(soldOut),
      'gate-winning': digits(winning),
      'gate-one': digits(perCore('sold out', 1)),
      'gate-times': digits(times),
    },
    raw,
  };
}

function goals(soldOut: number, winning: number, times: number): Goal[] {
  const what = 'gate decisions on one Redis core, batched';
  return [
    { what: `${what}: sold out`, goal: '≥ 1,000,000 per second', measured: digits(soldOut), met: soldOut >= 1e6 },
    { what: `${what}: winning`, goal: '≥ 400,000 per second', measured: digits(winning), met: winning >= 4e5 },
    {
      what: `${what}: against one script call per request`,
      goal: '≥ 20 ×',
      measured: `${digits(times)} ×`,
      met: times >= 20,
    },
  ];
}

/** Microseconds per win of the commands that the script calls, of the script itself, and of all of it. */
async function whereTimeGoes(bench: Bench): Promise<[name: string, us: number][]> {
  const { redis, sizes } = bench;
  await redis.config('RESETSTAT');
  await once(bench, 'winning', PROFILED_BATCH);
  const stats = [...(await redis.info('commandstats')).matchAll(/^cmdstat_(\w+):calls=\d+,usec=(\d+)/gm)];
  const wins = Math.round(sizes.gate.decisions / PROFILED_BATCH) * PROFILED_BATCH;
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

async function once(bench: Bench, kind: Kind, batch: number): Promise<Measured> {
  const { redis, env, sizes, pids } = bench;
  const calls = Math.max(1, Math.round((batch === 1 ? sizes.gate.perRequest : sizes.gate.decisions) / batch));
  const decisions = calls * batch;
  const saleId = `gate-${randomUUID().slice(0, 8)}`;
  const keys = gateKeys(saleId);
  await open(bench, saleId, kind === 'winning' ? decisions : 0);
  const encoded = prepare(saleId, kind === 'winning' ? calls : Math.min(calls, 64), batch);
  const spent = watch({ redis: pids.redis });
  const seconds = await sendAll(env['REDIS_URL'] ?? '', {
    calls,
    call: (n) => encoded[n % encoded.length] ?? Buffer.alloc(0),
    inFlight: Math.max(2, Math.floor(UNDER_WAY / batch)),
    marker: MARKER,
  });
  const cpuUs = (spent().redis * 1000) / decisions;
  const [stock, holds] = [await redis.get(keys[0]), await redis.hlen(keys[2])];
  const expected = kind === 'winning' ? decisions : 0;
  if (holds !== expected || stock !== '0') {
    throw new Error(
      `${kind}, ${batch} per call: ${holds} holds and a stock of ${String(stock)}, not ${expected} and 0`,
    );
  }
  await redis.del(...keys); // in the foreground: freeing it is no part of the next measurement
  return { rate: decisions / seconds, cpuUs };
}

async function open({ redis }: Bench, saleId: string, total: number): Promise<void> {
  const now = Date.now();
  const settings = [1, 'open', now - 1000, now + 86_400_000, total, 1, 600, 49_900, 'EUR'];
  await script('open').run(redis, gateKeys(saleId), ['begin', 1]);
  const answer = await script('open').run(redis, gateKeys(saleId), ['open', 1, ...settings]);
  if (answer !== 'opened') throw new Error(`the gate did not open: ${String(answer)}`);
  await script('reserve').run(
    redis,
    gateKeys(saleId),
    reserveArgs('load', [{ userId: 'nobody', reservationId: randomUUID(), qty: 2 }]),
  ); // over the limit: loads the script
}

/** Calls of different buyers each; the batch id is the mark by which replies are counted. */
function prepare(saleId: string, calls: number, batch: number): Buffer[] {
  const { sha1 } = script('reserve');
  const keys = gateKeys(saleId);
  return Array.from({ length: calls }, (_, n) => {
    const buyer = (m: number) => ({ userId: `buyer-${n * batch + m}`, reservationId: randomUUID(), qty: 1 });
    const args = reserveArgs(
      MARKER,
      Array.from({ length: batch }, (__, m) => buyer(m)),
    );
    return encode(['EVALSHA', sha1, keys.length, ...keys, ...args]);
  });
}

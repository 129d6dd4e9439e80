/** What limits and traces cost: server CPU of a refusal and of a winning press, with and without, beside a bare route. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Bench, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, rush, warmUp, type Round } from '../lib/rounds.ts';
import { digits, median, withSpread } from '../lib/stats.ts';
import { DESIGNS, startFlashgate, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
const UNITS = 100;
/** What each API of the bench has besides its defaults; the limit is one that each buyer stays under. */
const LIMITS = { RATE_LIMIT_BUYER: '100', MAX_EVENT_LOOP_DELAY_MS: '1000', CORS_ORIGINS: 'https://shop.example' };
const EVERYTHING = 'limits and traces';
type Side = { name: string; target: Target; saleId: string; sells: boolean; refusals: Round[]; wins: Round[] };

/** The part `telemetry`: server CPU in microseconds per request. */
export async function telemetry(bench: Bench): Promise<Section> {
  const { requests, wins, rounds } = bench.sizes.telemetry;
  const collector = await startSink();
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const sampled = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' };
  const settings: Record<string, Record<string, string>> = {
    neither: { RATE_LIMIT_BUYER: '0' },
    limits: LIMITS,
    [EVERYTHING]: { ...LIMITS, ...traces },
    'limits, one trace in a hundred': { ...LIMITS, ...traces, ...sampled },
  };
  const sides: Side[] = [];
  const raw: string[] = [];
  const note = (name: string, round: Round) => {
    raw.push(line(name, round));
    bench.say(line(name, round));
  };
  const join = async (name: string, target: Target, sells: boolean) => {
    await warmUp(bench, target, CONNECTIONS, Math.min(5_000, requests));
    const saleId = await target.newSale(UNITS);
    await measure(bench, target, saleId, { connections: CONNECTIONS, requests: 10 * UNITS });
    sides.push({ name, target, saleId, sells, refusals: [], wins: [] });
  };
  try {
    await join('bare Fastify route', await DESIGNS.bare.start(bench), false);
    for (const [name, env] of Object.entries(settings)) {
      await join(name, await startFlashgate(bench, name, { API_PROCESSES: '1', ...env }), true);
    }
    // One round more than counted: the first compiles what the others run.
    for (let n = 0; n <= rounds; n += 1) {
      for (const { name, target, saleId, refusals } of sides) {
        const round = await measure(bench, target, saleId, { connections: CONNECTIONS, requests });
        if (n === 0) continue;
        refusals.push(round);
        note(`${name}, refusals`, round);
      }
      for (const { name, target, wins: all } of sides.filter(({ sells }) => sells)) {
        const round = await rush(bench, target, wins, { connections: CONNECTIONS, requests: wins });
        if (n === 0) continue;
        all.push(round);
        note(`${name}, wins`, round);
      }
    }
  } finally {
    for (const { target } of sides) await target.stop();
    collector.close();
  }
  /** A winning press on this side, in shares of one with limits alone. */
  const ofLimits = (name: string) => {
    const winsOf = (side: string) => sides.find((each) => each.name === side)?.wins ?? [];
    const limits = winsOf('limits');
    return median(winsOf(name).map(({ cpu }, n) => cpu.server / (limits[n]?.cpu.server ?? Number.NaN)));
  };
  const server = (all: Round[]) => (all.length === 0 ? '' : withSpread(all.map(({ cpu }) => cpu.server)));
  const bare = sides[0]?.refusals ?? [];
  const ofBare = ({ refusals }: Side) =>
    median(refusals.map(({ cpu }, n) => cpu.server / (bare[n]?.cpu.server ?? Number.NaN)));
  const everything = ofBare(sides.find(({ name }) => name === EVERYTHING) as Side);
  return {
    title: 'What limits and traces cost',
    goals: [
      {
        what: 'the same refusal with limits and traces on',
        goal: '≤ 1.0 ×',
        measured: `${digits(everything)} ×`,
        met: everything <= 1,
      },
    ],
    text: [
      `${requests.toLocaleString('en-US')} refusals by a process that knows that nothing is left, and ${wins.toLocaleString('en-US')} presses that all win, over ${CONNECTIONS} connections; ${rounds} rounds, in turn, after one that is not counted; one server process each. _Limits_: ${Object.entries(
        LIMITS,
      )
        .map(([name, value]) => `\`${name}=${value}\``)
        .join(', ')}. With traces on, a collector takes what comes and throws it away.`,
      ...table(
        ['server CPU µs per request', 'a refusal', 'of bare', 'a winning press'],
        ...sides.map((side) => [side.name, server(side.refusals), `${digits(ofBare(side))} ×`, server(side.wins)]),
      ),
    ],
    figures: {
      'traced-win-times': digits(ofLimits('limits and traces')),
      'sampled-win-times': digits(ofLimits('limits, one trace in a hundred')),
    },
    raw,
  };
}

/** A collector that keeps nothing. */
async function startSink() {
  const server = createServer((request, reply) => {
    request.resume().once('end', () => reply.end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => server.close() };
}

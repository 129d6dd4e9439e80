/** What traces cost: server CPU of a refusal and of a winning press, with traces off, on, and one in a hundred. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Bench, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, rush, warmUp, type Round } from '../lib/rounds.ts';
import { withSpread } from '../lib/stats.ts';
import { startFlashgate, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
const UNITS = 100;
type Side = { name: string; target: Target; saleId: string; refusals: Round[]; wins: Round[] };

export async function telemetry(bench: Bench): Promise<Section> {
  const { requests, wins, rounds } = bench.sizes.telemetry;
  const collector = await startSink();
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const sampled = { ...on, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' };
  const settings = { 'traces off': {}, 'traces on': on, 'one in a hundred': sampled };
  const sides: Side[] = [];
  const raw: string[] = [];
  const note = (name: string, round: Round) => {
    raw.push(line(name, round));
    bench.say(line(name, round));
  };
  try {
    for (const [name, env] of Object.entries(settings)) {
      const target = await startFlashgate(bench, name, { API_PROCESSES: '1', ...env });
      await warmUp(bench, target, CONNECTIONS, Math.min(3_000, requests));
      const saleId = await target.newSale(UNITS);
      await measure(bench, target, saleId, { connections: CONNECTIONS, requests: 10 * UNITS });
      sides.push({ name, target, saleId, refusals: [], wins: [] });
    }
    for (let n = 0; n < rounds; n += 1) {
      for (const { name, target, saleId, refusals } of sides) {
        refusals.push(await measure(bench, target, saleId, { connections: CONNECTIONS, requests }));
        note(`${name}, refusals`, refusals[n] as Round);
      }
      for (const { name, target, wins: all } of sides) {
        all.push(await rush(bench, target, wins, { connections: CONNECTIONS, requests: wins }));
        note(`${name}, wins`, all[n] as Round);
      }
    }
  } finally {
    for (const { target } of sides) await target.stop();
    collector.close();
  }
  const server = (all: Round[]) => withSpread(all.map(({ cpu }) => cpu.server));
  return {
    title: 'What traces cost',
    text: [
      `${requests.toLocaleString('en-US')} refusals by a process that knows that nothing is left, and ${wins.toLocaleString('en-US')} presses that all win, over ${CONNECTIONS} connections; ${rounds} rounds, in turn; one server process each. With traces on, a collector takes what comes and throws it away.`,
      ...table(
        ['server CPU µs per request', 'a refusal', 'a winning press'],
        ...sides.map(({ name, refusals, wins: all }) => [name, server(refusals), server(all)]),
      ),
    ],
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

/** What thousands of listeners to a sale's event stream cost: those who press meanwhile, the server, and each other. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Section } from '../bench.ts';
import { cpuMs, residentBytes } from '../lib/cpu.ts';
import { Listeners } from '../lib/listeners.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, warmUp, type Round } from '../lib/rounds.ts';
import { digits, median, quantile, withSpread } from '../lib/stats.ts';
import { startFlashgate, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
const UNITS = 100;
/** Longer than the interval at which a process looks (EVENT_POLL_MS) and than a slow machine takes to write to all. */
const HEARD_WITHIN_MS = 10_000;

/** Milliseconds from a change's being answered until the middle listener, and the last one, heard of it. */
type Change = { middle: number; last: number };
/** A round of refusals while so many listen, and what nobody's pressing cost the server, in CPU ms per second. */
type Rounds = { refusals: Round[]; idle: number[] };

/** The part `listeners`: CPU in microseconds per refusal, times in milliseconds, memory in bytes. */
export async function listeners(bench: Bench): Promise<Section> {
  const { requests, listeners: many, rounds, changes } = bench.sizes.listeners;
  const raw: string[] = [];
  const note = (words: string) => {
    raw.push(words);
    bench.say(words);
  };
  const target = await startFlashgate(bench, 'flashgate', { API_PROCESSES: '1' });
  const crowd = await Listeners.start();
  try {
    await warmUp(bench, target, CONNECTIONS, Math.min(3_000, requests));
    const rushed = await target.newSale(UNITS);
    await measure(bench, target, rushed, { connections: CONNECTIONS, requests: 10 * UNITS });
    const [none, all]: [Rounds, Rounds] = [
      { refusals: [], idle: [] },
      { refusals: [], idle: [] },
    ];
    let bytes = 0;
    const busy = await target.newSale(1_000_000); // the one that is listened to, and changes all the time
    const path = `/sales/${busy}/events`;
    for (let n = 0; n < rounds; n += 1) {
      await oneRound(bench, target, rushed, none);
      note(line('nobody listens', none.refusals[n] as Round));
      const before = residentBytes(target.pid);
      await crowd.listen({ port: target.port, path, listeners: many });
      if (n === 0) bytes = (residentBytes(target.pid) - before) / many; // later ones find memory that is there already
      const changing = keepChanging(target, busy);
      await oneRound(bench, target, rushed, all);
      await changing.stop();
      const { heardAt, lost } = await crowd.take();
      if (lost > 0) throw new Error(`${lost} listeners were cut off`);
      note(`${line(`${many} listen`, all.refusals[n] as Round)}  events heard ${heardAt.length}`);
      if (n < rounds - 1) await crowd.leave();
    }
    const heard = await changeAndHear(target, busy, crowd, many, changes);
    for (const { middle, last } of heard)
      note(`a change: middle listener ${digits(middle)} ms, last ${digits(last)} ms`);
    note(`memory per listener: ${Math.round(bytes)} bytes`);
    return { title: 'Listeners', text: report(bench, { none, all }, heard, bytes), raw };
  } finally {
    await crowd.stop();
    await target.stop();
  }
}

const IDLE_MS = 1500;

async function oneRound(bench: Bench, target: Target, saleId: string, { refusals, idle }: Rounds): Promise<void> {
  const { requests } = bench.sizes.listeners;
  refusals.push(await measure(bench, target, saleId, { connections: CONNECTIONS, requests }));
  const before = cpuMs(target.pid);
  await sleep(IDLE_MS);
  idle.push(((cpuMs(target.pid) - before) * 1000) / IDLE_MS);
}

const CHANGE_EVERY_MS = 250;
let buyers = 0;

/** Somebody wins a unit. @returns when that was answered, in epoch milliseconds */
async function winOne({ port, token }: Target, saleId: string): Promise<number> {
  buyers += 1;
  const reply = await fetch(`http://127.0.0.1:${port}/sales/${saleId}/reserve`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ userId: `winner-${buyers}` }),
  });
  if (reply.status !== 202) throw new Error(`nobody won: ${reply.status} ${await reply.text()}`);
  await reply.body?.cancel();
  return performance.timeOrigin + performance.now();
}

/** A unit less, four times a second, until it is stopped. */
function keepChanging(target: Target, saleId: string): { stop: () => Promise<void> } {
  const stopping = new AbortController();
  const changing = (async () => {
    while (!stopping.signal.aborted) {
      await winOne(target, saleId);
      await sleep(CHANGE_EVERY_MS);
    }
  })();
  changing.catch(() => undefined); // told by stop()
  const stop = () => {
    stopping.abort();
    return changing;
  };
  return { stop };
}

/** Changes the sale again and again, and waits each time until everybody has heard. */
async function changeAndHear(
  target: Target,
  saleId: string,
  crowd: Listeners,
  count: number,
  times: number,
): Promise<Change[]> {
  const heard: Change[] = [];
  for (let n = 0; n < times; n += 1) {
    await sleep(1000 + Math.random() * CHANGE_EVERY_MS); // what is on its way is heard; and no change in step with the looks
    await crowd.take();
    const changedAt = await winOne(target, saleId);
    const at: number[] = [];
    const deadline = Date.now() + HEARD_WITHIN_MS;
    while (at.length < count) {
      await sleep(50);
      at.push(...(await crowd.take()).heardAt);
      if (Date.now() > deadline) throw new Error(`${at.length} of ${count} listeners heard of a change`);
    }
    heard.push({ middle: quantile(at, 0.5) - changedAt, last: quantile(at, 1) - changedAt });
  }
  return heard;
}

function report({ sizes }: Bench, { none, all }: Record<'none' | 'all', Rounds>, heard: Change[], bytes: number) {
  const { requests, listeners: many, rounds } = sizes.listeners;
  const row = (name: string, { refusals, idle }: Rounds) => [
    name,
    withSpread(refusals.map(({ cpu }) => cpu.server)),
    withSpread(refusals.map(({ rate }) => rate)),
    withSpread(refusals.map(({ latencyMs }) => latencyMs.p99)),
    withSpread(idle),
  ];
  const lasts = heard.map(({ last }) => last);
  return [
    `${requests.toLocaleString('en-US')} refusals over ${CONNECTIONS} connections by one server process, while nobody listens, or ${many.toLocaleString('en-US')} connections to the event stream of another sale of which a unit is won four times a second; ${rounds} rounds, in turn. Then the same without the refusals.`,
    ...table(
      ['', 'server CPU µs per refusal', 'refusals per second', 'p99 ms', 'without refusals: server CPU ms per second'],
      row('nobody listens', none),
      row(`${many.toLocaleString('en-US')} listen`, all),
    ),
    '',
    `From a winner’s answer until the last of ${many.toLocaleString('en-US')} listeners has heard of it, when nothing else goes on: p50 ${digits(quantile(lasts, 0.5))} ms, p99 ${digits(quantile(lasts, 0.99))} ms of ${heard.length} changes; the middle listener ${digits(median(heard.map(({ middle }) => middle)))} ms. A process looks every 250 ms. A listener takes ${digits(bytes / 1024)} KiB of the server’s memory.`,
  ];
}

/** One reading for many listeners, over real connections: what each hears, once; who is cut off; how it all ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { GateUnavailable } from '../../src/gate/gate.ts';
import type { Reading } from '../../src/http/fan-out.ts';
import { bare, Listener, type Bare } from './bare.ts';

vi.setConfig({ testTimeout: 30_000 });
const PATIENCE = { timeout: 20_000, interval: 10 };

let at: Bare | undefined;
const listeners: Listener[] = [];
afterEach(async () => {
  await at?.app.close();
  at = undefined;
  for (const { socket } of listeners.splice(0)) socket.destroy();
});

/** Topics as the test sets them, each with how often it was read, and how many were read at once. */
function world(topics: Record<string, Reading | Error> = { a: { event: 'state', data: '"one"' } }) {
  const calls: string[][] = [];
  const read = (names: string[]) => {
    calls.push(names);
    const found = names.map((name): [string, Reading] => {
      const is = topics[name];
      if (is instanceof Error) throw is;
      return [name, is ?? { away: 'not_found' }];
    });
    return Promise.resolve(new Map(found));
  };
  return { topics, calls, read };
}
function listen(name: string, lastEventId?: string): Listener {
  const listener = new Listener(`${at?.url ?? ''}/${name}`, lastEventId === undefined ? {} : { lastEventId });
  listeners.push(listener);
  return listener;
}
const heard = (listener: Listener, count: number) => expect.poll(() => listener.events.length, PATIENCE).toBe(count);
const datas = ({ events }: Listener) => events.map(({ data }) => data);
/** Some readings later. */
async function later({ calls }: { calls: unknown[] }, count = 4): Promise<void> {
  const from = calls.length;
  await expect.poll(() => calls.length, PATIENCE).toBeGreaterThanOrEqual(from + count);
}

test('each hears what is, then what it becomes; one reading per tick for all topics and listeners', async () => {
  const it = world({ a: { event: 'state', data: '"one"' }, b: { event: 'state', data: '"other"' } });
  at = await bare(it.read);
  const all = [...Array.from({ length: 20 }, () => listen('a')), listen('b')];
  for (const each of all) await heard(each, 1);
  expect(all[0]?.head).toMatch(/200 OK\r\n/);
  expect(all[0]?.head.toLowerCase()).toMatch(/content-type: text\/event-stream\r\n/);
  expect(all[0]?.head.toLowerCase()).toMatch(/cache-control: no-store\r\n/);
  expect(all[0]?.head.toLowerCase()).toMatch(/x-accel-buffering: no\r\n/);
  expect(all.every(({ retryMs }) => retryMs >= 1000 && retryMs < 5000)).toBe(true);

  it.calls.length = 0;
  await later(it);
  expect(it.calls.every((names) => names.toSorted().join() === 'a,b')).toBe(true);
  it.topics['a'] = { event: 'state', data: '"two"' };
  for (const each of all.slice(0, 20)) await heard(each, 2);
  await later(it);
  expect(datas(all[0] as Listener)).toEqual(['"one"', '"two"']);
  expect(datas(all[20] as Listener)).toEqual(['"other"']);
  expect(new Set(all.slice(0, 20).map(({ events }) => events[1]?.id)).size).toBe(1);
});

test('nothing is read once nobody listens, and the first one to come begins anew', async () => {
  const it = world();
  at = await bare(it.read);
  const first = listen('a');
  await heard(first, 1);
  first.socket.destroy();
  await expect
    .poll(() => {
      const before = it.calls.length;
      return sleep(100).then(() => it.calls.length - before);
    }, PATIENCE)
    .toBe(0);
  await heard(listen('a'), 1);
});

test('whoever comes back knowing what is hears nothing until it changes; so in every process', async () => {
  const it = world();
  at = await bare(it.read);
  const first = listen('a');
  await heard(first, 1);
  const id = first.events[0]?.id ?? '';
  const other = await bare(it.read);
  const back = new Listener(`${other.url}/a`, { lastEventId: id });
  const behind = new Listener(`${other.url}/a`, { lastEventId: 'something-old' });
  await heard(behind, 1);
  await later(it);
  expect(back.status).toBe(200);
  expect(back.events).toEqual([]);
  it.topics['a'] = { event: 'state', data: '"two"' };
  await heard(back, 1);
  expect(datas(back)).toEqual(['"two"']);
  await other.app.close();
});

test('only what counts as a change is one', async () => {
  const it = world({ a: { event: 'state', data: '{"n":1,"at":1}', identity: '1' } });
  at = await bare(it.read);
  const first = listen('a');
  await heard(first, 1);
  it.topics['a'] = { event: 'state', data: '{"n":1,"at":2}', identity: '1' };
  await later(it);
  it.topics['a'] = { event: 'state', data: '{"n":2,"at":3}', identity: '2' };
  await heard(first, 2);
  expect(datas(first)).toEqual(['{"n":1,"at":1}', '{"n":2,"at":3}']);
});

test('after the last state the stream ends, its connection stays good, and whoever comes back with it gets 204', async () => {
  const it = world();
  at = await bare(it.read);
  const first = listen('a');
  await heard(first, 1);
  it.topics['a'] = { event: 'state', data: '"over"', last: true };
  await heard(first, 2);
  await expect.poll(() => first.done, PATIENCE).toBe(true);
  const back = listen('a', first.events[1]?.id);
  await expect.poll(() => back.status, PATIENCE).toBe(204);
  const late = listen('a');
  await heard(late, 1);
  await expect.poll(() => late.done, PATIENCE).toBe(true);
});

test('what is away is told, once, and what comes back is told again though it is the same', async () => {
  const it = world();
  at = await bare(it.read, { waitsFor: ['gate_unavailable'] });
  const first = listen('a');
  await heard(first, 1);
  it.topics['a'] = new GateUnavailable('Redis is away');
  await heard(first, 2);
  const meanwhile = listen('a', first.events[0]?.id);
  await heard(meanwhile, 1);
  await later(it);
  it.topics['a'] = { event: 'state', data: '"one"' };
  await heard(first, 3);
  await heard(meanwhile, 2);
  expect(first.events[1]).toEqual({ event: 'unavailable', id: undefined, data: '{"code":"gate_unavailable"}' });
  expect(first.events[2]).toEqual(first.events[0]);
  expect(at.log).toHaveLength(1);
});

test('a new listener is refused by the name of what is away, unless that is waited for', async () => {
  const it = world({ a: new GateUnavailable('Redis is away') });
  at = await bare(it.read, { waitsFor: ['gate_not_loaded'] });
  const [unknown, away] = [listen('nothing'), listen('a')];
  await expect.poll(() => [unknown.status, away.status], PATIENCE).toEqual([404, 503]);
  it.topics['a'] = { away: 'gate_not_loaded' };
  const waits = listen('a');
  await heard(waits, 1);
  expect(datas(waits)).toEqual(['{"code":"gate_not_loaded"}']);
});

test('a silent stream has heartbeats, and outlives the time limits of other requests', async () => {
  const it = world();
  at = await bare(it.read, { heartbeatMs: 2000 }); // connections may be silent for 500 ms
  const first = listen('a');
  await expect.poll(() => first.heartbeats, PATIENCE).toBeGreaterThanOrEqual(2);
  expect(first.events).toHaveLength(1);
  first.socket.destroy();

  // The limits are those of every other connection.
  const silent = new Listener(`${at.url}/plain`);
  await silent.ended;
});

test('more than there may be are refused, and one that leaves makes room', async () => {
  const it = world();
  at = await bare(it.read, { max: 2 });
  const [first, second] = [listen('a'), listen('a')];
  await heard(first, 1);
  await heard(second, 1);
  const third = listen('a');
  await expect.poll(() => third.status, PATIENCE).toBe(503);
  expect(third.head.toLowerCase()).toMatch(/retry-after: [1-3]\r\n/);
  first.socket.destroy();
  await expect
    .poll(async () => {
      const next = listen('a');
      await expect.poll(() => next.status, PATIENCE).toBeGreaterThan(0);
      return next.status;
    }, PATIENCE)
    .toBe(200);
});

test('whoever does not read is cut off; the others hear all of it', async () => {
  const big = (n: number): Reading => ({ event: 'state', data: `"${String(n).repeat(200_000)}"` });
  const it = world({ a: big(0) });
  at = await bare(it.read);
  const deaf = listen('a');
  await heard(deaf, 1);
  deaf.socket.pause();
  const reader = listen('a');
  await heard(reader, 1);
  const open = () =>
    new Promise<number>((resolve, reject) => {
      at?.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  for (let n = 1; (await open()) > 1; n += 1) {
    it.topics['a'] = big(n % 10);
    await heard(reader, n + 1);
    expect(n, 'events that were kept for one who does not read').toBeLessThan(300);
  }
});

test('open streams do not hold the end of a process up; whoever still comes is told what is, and let go', async () => {
  const it = world();
  at = await bare(it.read);
  const { app, streams } = at;
  const all = Array.from({ length: 10 }, () => listen('a'));
  for (const each of all) await heard(each, 1);
  streams.close();
  await expect.poll(() => all.every(({ done }) => done), PATIENCE).toBe(true);
  const late = listen('a');
  await heard(late, 1);
  await expect.poll(() => late.done, PATIENCE).toBe(true);
  const begun = performance.now();
  await app.close();
  expect(performance.now() - begun).toBeLessThan(10_000); // idle connections are kept for half a second here
  at = undefined;
});

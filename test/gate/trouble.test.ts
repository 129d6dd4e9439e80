/** The gate when Redis is stopped, cut off, full, demoted, or set to forget. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { Overloaded, TooLate } from '../../src/batcher.ts';
import type { Outcome } from '../../src/domain/outcomes.ts';
import { Gate, GateUnavailable } from '../../src/gate/gate.ts';
import { anotherGate, ask, inTime, openSale, startSystem, type System } from '../races/system.ts';
import { until } from '../races/until.ts';
import { privateRedis } from '../support/servers.ts';
import { holdText, Probe } from './probe.ts';
import { startProxy, type Proxy } from './proxy.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanUp.splice(0).reverse()) await clean();
});

/**
 * A system with a Redis of its own, reached through a proxy if asked for.
 * @param timeoutMs of a call: short where calls are to end by it, long where a slow machine must not
 */
async function ownSystem({ withProxy = false, timeoutMs = 1900 } = {}) {
  const server = await privateRedis();
  const proxy = withProxy ? await startProxy(server.url) : undefined;
  if (proxy) cleanUp.push(() => proxy.close());
  const system = await startSystem({ REDIS_URL: proxy?.url ?? server.url, GATE_TIMEOUT_MS: String(timeoutMs) });
  cleanUp.push(() => system.stop());
  const direct = new Redis(server.url);
  cleanUp.push(() => direct.disconnect());
  let saleId = '';
  await until('a sale is open', async () => (saleId = await openSale(system)) !== '');
  return { server, proxy: proxy as Proxy, system, saleId, probe: new Probe(direct, saleId) };
}

/** A press that is tried again for as long as Redis is not quite back. */
async function pressUntil(gate: Gate, saleId: string, userId: string, qty = 1, reservationId: string = randomUUID()) {
  let answer: Outcome | undefined;
  await until(`${userId} is answered`, async () => {
    answer = await ask(gate, saleId, userId, qty, reservationId);
    return true;
  });
  if (!answer) throw new Error('until() has an answer or throws');
  return answer;
}

const settled = (promises: Promise<unknown>[]) => Promise.allSettled(promises);
const works = (system: System) =>
  until('the gate works', async () => {
    await system.stores.gate.check();
    return true;
  });

/** Each was refused by name: nobody was told yes, nobody was left without an answer. */
function allRefused(results: PromiseSettledResult<unknown>[]) {
  for (const result of results) {
    if (result.status === 'fulfilled') throw new Error(`answered ${JSON.stringify(result.value)}`);
    const named = [GateUnavailable, TooLate, Overloaded].some((kind) => result.reason instanceof kind);
    expect(named, String(result.reason)).toBe(true);
  }
}

test('Redis stops: every call ends while it stands still; it goes on, and nothing is lost or taken twice', async () => {
  const { server, system, saleId, probe } = await ownSystem({ timeoutMs: 400 });
  const { gate } = system.stores;
  await pressUntil(gate, saleId, 'early');
  // A client with no limit of its own, which also sends again: the gate alone ends its calls.
  const patient = new Redis(server.url);
  cleanUp.push(() => patient.disconnect());
  const slow = new Gate(patient, { timeoutMs: 400, batch: 10, pending: 10 });
  await slow.check();
  const late = randomUUID();
  server.kill('SIGSTOP');
  allRefused(await settled([ask(slow, saleId, 'late', 1, late), slow.check(), slow.release(saleId, [])]));
  // If one of these did not end by itself, this test would not: Redis is let on only afterwards.
  allRefused(await settled(Array.from({ length: 300 }, (_, n) => ask(gate, saleId, `u${n % 8}`))));
  allRefused(await settled([gate.figures(saleId), gate.hold(saleId, 'early'), gate.check(), gate.release(saleId, [])]));
  server.kill('SIGCONT');
  await works(system);
  await probe.checkRules();
  for (let n = 0; n < 8; n += 1) expect('hold' in (await pressUntil(gate, saleId, `u${n}`))).toBe(true);
  await probe.checkRules();
  // The caller gave up, the command ran later: the hold is found, with the id that was minted before.
  expect(await pressUntil(gate, saleId, 'late')).toMatchObject({ outcome: 'dup', hold: { reservationId: late } });
  expect((await probe.read()).held).toBe(10);
});

test('the connection is cut after the script ran: one unit, and pressing again gives the same reservation', async () => {
  const { proxy, system, saleId, probe } = await ownSystem({ withProxy: true });
  const { gate } = system.stores;
  const reservationId = randomUUID();
  await ask(gate, saleId, 'early');
  proxy.dropReplyTo(reservationId);
  await expect(ask(gate, saleId, 'ann', 2, reservationId)).rejects.toThrow(GateUnavailable);
  expect(proxy.dropped).toBe(1);
  expect((await probe.read()).held).toBe(3);
  await works(system);
  // With the id that was minted before the call it is the same call; with another it is the buyer who presses again.
  expect(await pressUntil(gate, saleId, 'ann', 2, reservationId)).toMatchObject({
    outcome: 'ok',
    hold: { reservationId },
  });
  expect(await ask(gate, saleId, 'ann', 1)).toMatchObject({
    ...{ outcome: 'dup', queued: false, hold: { reservationId, qty: 2 } },
  });
  await probe.checkRules();
  expect(await probe.read()).toMatchObject({ held: 3, stock: 7 });
});

test('a lost reply to a release: asked again, the units come back once', async () => {
  const { proxy, system, saleId, probe } = await ownSystem({ withProxy: true });
  const { gate } = system.stores;
  const answer = await ask(gate, saleId, 'ann', 3);
  if (answer.outcome !== 'ok') throw new Error(answer.outcome);
  await gate.release(saleId, []); // from here on Redis knows the script
  proxy.dropReplyTo(answer.hold.reservationId);
  await expect(gate.release(saleId, [answer.hold])).rejects.toThrow(GateUnavailable);
  await works(system);
  await until('a release is answered', async () => (await gate.release(saleId, [answer.hold])).includes('not_held'));
  expect(await probe.read()).toMatchObject({ held: 0, stock: 10 });
});

test('cut off with nothing resent: every request is answered while it lasts, and served when it is over', async () => {
  const { proxy, system, saleId, probe } = await ownSystem({ withProxy: true });
  const { gate } = system.stores;
  const press = (n: number) => ask(gate, saleId, `u${n}`);
  const underWay = Array.from({ length: 100 }, (_, n) => press(n));
  await new Promise((resolve) => setImmediate(resolve));
  proxy.cut();
  const atTheCut = await settled(underWay); // whoever was answered before the cut has an answer, the rest an error
  allRefused(atTheCut.filter(({ status }) => status === 'rejected'));
  allRefused(await settled(Array.from({ length: 100 }, (_, n) => press(n))));
  proxy.mend();
  await works(system);
  const after = await Promise.all(Array.from({ length: 100 }, (_, n) => pressUntil(gate, saleId, `u${n}`)));
  const holders = after.filter(({ outcome }) => outcome !== 'sold_out');
  expect(holders).toHaveLength(10);
  await probe.checkRules();
  expect(await probe.read()).toMatchObject({ stock: 0, held: 10 });
});

describe('readiness says why not', () => {
  test('a policy that evicts', async () => {
    const { system, probe } = await ownSystem();
    for (const policy of ['allkeys-lru', 'volatile-ttl', 'allkeys-random']) {
      await probe.redis.config('SET', 'maxmemory-policy', policy);
      await expect(system.stores.gate.check()).rejects.toThrow(new RegExp(`${policy}.*noeviction`));
    }
    await probe.redis.config('SET', 'maxmemory-policy', 'noeviction');
    await system.stores.gate.check();
  });

  test('a replica: writes are refused, nothing is half done; promoted, it serves again', async () => {
    const { system, saleId, probe } = await ownSystem();
    const { gate } = system.stores;
    const won = await ask(gate, saleId, 'ann');
    if (won.outcome !== 'ok') throw new Error(won.outcome);
    await probe.redis.replicaof('127.0.0.1', '1'); // a master that does not answer
    const before = await probe.dump();
    await until('the gate sees a replica', async () => {
      const reason: unknown = await gate.check().catch((error: unknown) => error);
      return reason instanceof GateUnavailable && reason.message.includes('replica');
    });
    allRefused(await settled([ask(gate, saleId, 'bob'), gate.release(saleId, [won.hold])]));
    expect(await probe.dump()).toEqual(before);
    await probe.redis.call('REPLICAOF', 'NO', 'ONE');
    await works(system);
    expect(await pressUntil(gate, saleId, 'bob')).toMatchObject({ outcome: 'ok' });
    await probe.checkRules();
    expect(await probe.read()).toMatchObject({ stock: 8, held: 2 });
  });
});

test('memory is short: what would need some is refused as a whole, what gives some back works', async () => {
  const { system, saleId, probe } = await ownSystem();
  const { gate } = system.stores;
  const holds = [];
  for (const user of ['ann', 'bob', 'cleo', 'dan']) {
    const answer = await ask(gate, saleId, user);
    if (answer.outcome === 'ok') holds.push(answer.hold);
  }
  const [ann, bob, cleo, dan] = holds;
  if (!ann || !bob || !cleo || !dan) throw new Error('all four win');
  const newToken = String(Number((await probe.read()).fields.token) + 1);
  await probe.redis.config('SET', 'maxmemory', '1');

  const before = await probe.dump();
  await expect(ask(gate, saleId, 'eve')).rejects.toThrow(/OOM/);
  await expect(probe.call('adopt', '', 'eve', holdText())).rejects.toThrow(/OOM/);
  expect(await probe.dump()).toEqual(before);

  expect(await ask(gate, saleId, 'ann')).toMatchObject({ outcome: 'dup', hold: ann });
  await gate.queued(saleId, dan);
  expect(await gate.unqueued(saleId, 0, 1)).toEqual([ann]);
  expect(await gate.release(saleId, [ann])).toEqual(['released']);
  expect(await gate.release(saleId, [bob], newToken), 'by a keeper who is new').toEqual(['released']);
  expect(await gate.forfeit(saleId, [cleo])).toEqual(['forfeited']);
  expect(await probe.call('configure', '', 9, 'paused', 1, 9e12, 10, 4, 600, 500, 'EUR', 'ask')).toEqual(['applied']);
  await probe.checkRules();
  expect(await probe.read()).toMatchObject({ stock: 8, held: 1, forfeited: 1, unqueued: [], state: 'paused' });

  await probe.redis.config('SET', 'maxmemory', '0');
  await probe.call('configure', '', 10, 'open', 1, 9e12, 10, 4, 600, 500, 'EUR', 'ask');
  expect(await ask(gate, saleId, 'eve')).toMatchObject({ outcome: 'ok' });
});

test('a gate that lost a key is no gate for anybody: not for buyers, not for the figures', async () => {
  const { system, saleId, probe } = await ownSystem();
  const { gate } = system.stores;
  await ask(gate, saleId, 'ann');
  for (const key of [probe.keys.holds, probe.keys.buyers, probe.keys.stock, probe.keys.sale]) {
    const copy = await probe.redis.dumpBuffer(key);
    await probe.redis.del(key);
    expect(await ask(gate, saleId, 'bob')).toEqual({ outcome: 'not_loaded' });
    expect(await gate.figures(saleId)).toBeUndefined();
    await probe.redis.restore(key, 0, copy);
  }
  expect(await gate.figures(saleId)).toMatchObject({ held: 1, stock: 9, total: 10 });
});

test('two gates of two processes ask at once: each answer is of its own buyer', async () => {
  const { system, saleId, probe } = await ownSystem();
  const other = anotherGate(system);
  cleanUp.push(() => other.close());
  await probe.configure({ settings: 9, total: 1000, endsAt: 9e12 });
  const pressed = Array.from({ length: 1000 }, (_, n) => ({
    ...{ userId: `u${n % 500}`, reservationId: randomUUID(), gate: n % 2 ? other.gate : system.stores.gate, qty: 1 },
  }));
  const answers = await Promise.all(pressed.map(({ gate, ...asked }) => gate.reserve(saleId, asked, inTime())));
  answers.forEach((answer, n) => {
    if (answer.outcome !== 'ok' && answer.outcome !== 'dup') throw new Error(answer.outcome);
    expect(answer.hold.userId).toBe(pressed[n]?.userId);
    if (answer.outcome === 'ok') expect(answer.hold.reservationId).toBe(pressed[n]?.reservationId);
  });
  expect((await probe.read()).held).toBe(500);
  await probe.checkRules();
});

/** Many at one barrier, through several connections as several API processes would have them. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/outcomes.ts';
import type { Gate } from '../../src/gate/gate.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
import { Probe } from '../gate/probe.ts';
import { anotherGate, ask, openSale, startSystem, type System } from './system.ts';

let system: System;
let others: ReturnType<typeof anotherGate>[];
beforeAll(async () => {
  system = await startSystem();
  others = Array.from({ length: 4 }, () => anotherGate(system));
  for (const { gate } of others) await gate.check();
});
afterAll(async () => {
  for (const { close } of others) close();
  await system.stop();
});

const gateNo = (n: number) => others[n % others.length]?.gate as Gate;
const kinds = (answers: Outcome[]) => answers.map(({ outcome }) => outcome).sort();
const won = (answers: Outcome[]) => answers.flatMap((answer) => (answer.outcome === 'ok' ? [answer.hold] : []));

test('1 unit, 2 buyers, 1,000 rounds: one ok, one sold_out, every round', async () => {
  const saleId = await openSale(system, { total: 1 });
  const probe = new Probe(system.redis, saleId);
  const winners = new Set<string>();
  for (let round = 0; round < 1000; round += 1) {
    const users = round % 2 ? ['ann', 'bob'] : ['bob', 'ann'];
    const answers = await Promise.all(users.map((user, n) => ask(gateNo(n), saleId, user)));
    expect(kinds(answers)).toEqual(['ok', 'sold_out']);
    const [hold] = won(answers);
    if (!hold) throw new Error('nobody won');
    winners.add(hold.userId);
    expect(await gateNo(2).release(saleId, [hold])).toEqual(['released']);
  }
  await probe.checkRules();
  expect(await probe.read()).toMatchObject({ stock: 1, held: 0, version: 2000 });
  expect([...winners].sort()).toEqual(['ann', 'bob']);
});

test('20,000 tries on 100 units: the counter ends at 0; one release gives exactly one more win', async () => {
  const saleId = await openSale(system, { total: 100 });
  const probe = new Probe(system.redis, saleId);
  // The program's own gate, which refuses by itself what it knows to be sold out, is one of those that ask.
  const gates = [system.stores.gate, ...others.map(({ gate }) => gate)];
  const crowd = (from: number, count: number, among: Gate[]) =>
    Promise.all(Array.from({ length: count }, (_, n) => ask(among[n % among.length] as Gate, saleId, `u${from + n}`)));
  const answers = await crowd(0, 20_000, gates);
  const holds = won(answers);
  expect(holds).toHaveLength(100);
  expect(answers.filter(({ outcome }) => outcome === 'sold_out')).toHaveLength(19_900);
  await probe.checkRules();
  expect(await probe.read()).toMatchObject({ stock: 0, held: 100 });
  for (let n = 0; n < 3; n += 1) {
    const hold = holds[n * 7];
    if (!hold) throw new Error('there are 100');
    expect(await gateNo(0).release(saleId, [hold])).toEqual(['released']);
    const more = await crowd(20_000 + n * 500, 500, gates.slice(1)); // whose gates have no latch
    expect(kinds(more).filter((kind) => kind === 'ok')).toHaveLength(1);
    expect((await probe.read()).stock).toBe(0);
  }
  await probe.checkRules();
});

test('one buyer, 50 parallel requests: the stock falls by one, all 50 name the same reservation', async () => {
  const saleId = await openSale(system);
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(gateNo(n), saleId, 'ann', 1 + (n % 3))));
  const ids = new Set(answers.map((answer) => ('hold' in answer ? answer.hold.reservationId : answer.outcome)));
  expect(ids.size).toBe(1);
  expect(won(answers)).toHaveLength(1);
  const probe = new Probe(system.redis, saleId);
  await probe.checkRules();
  const [hold] = won(answers);
  expect(await probe.read()).toMatchObject({ held: hold?.qty, stock: 10 - (hold?.qty ?? 0), buyers: ['ann'] });
});

test('the same request resent 50 times at once is one request', async () => {
  const saleId = await openSale(system);
  const id = randomUUID();
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(gateNo(n), saleId, 'ann', 2, id)));
  expect(new Set(kinds(answers))).toEqual(new Set(['ok']));
  expect(await new Probe(system.redis, saleId).read()).toMatchObject({ held: 2, stock: 8 });
});

test('presses and releases of the same buyers at once: every unit is somewhere, always', async () => {
  const saleId = await openSale(system, { total: 5 });
  const probe = new Probe(system.redis, saleId);
  for (let round = 0; round < 60; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => ask(gateNo(n), saleId, `u${n % 6}`, 1 + (n % 2))),
    );
    await probe.checkRules();
    const holds = answers.flatMap((answer) => ('hold' in answer ? [answer.hold] : []));
    // Each is given back by all at once, some are forfeited in the same moment: each goes one way only.
    await Promise.all(
      holds.flatMap((hold, n) => [
        gateNo(n).release(saleId, [hold]),
        gateNo(n + 1).release(saleId, [hold, hold]),
        ...(round % 20 === 19 ? [gateNo(n + 2).forfeit(saleId, [hold])] : []),
      ]),
    );
    await probe.checkRules();
    const now = await probe.read();
    expect(now).toMatchObject({ held: 0, stock: 5 - now.forfeited });
    expect(
      await gateNo(0).settle(saleId, { generation: now.fields.generation ?? '', forfeited: now.forfeited }),
    ).toEqual({
      settled: now.forfeited,
    });
  }
});

test('ten who open the gate at once, beside buyers: it is opened once, and never undone', async () => {
  const saleId = await openSale(system, { total: 20 });
  const probe = new Probe(system.redis, saleId);
  await Promise.all(Array.from({ length: 5 }, (_, n) => ask(gateNo(n), saleId, `u${n}`)));
  const before = await probe.dump();
  const open = async () => openGate(system.stores, saleId, await tokenFor(system.stores.pool, saleId));
  expect(await Promise.all(Array.from({ length: 10 }, open))).toEqual(Array.from({ length: 10 }, () => 'live'));
  expect(await probe.dump(), 'a live gate').toEqual(before);

  const empty = await openSale(system, { total: 20 });
  const lost = new Probe(system.redis, empty);
  await system.redis.del(...Object.values(lost.keys));
  const asking = Promise.all(Array.from({ length: 200 }, (_, n) => ask(gateNo(n), empty, `u${n}`)));
  const openers = Array.from({ length: 10 }, async (_, n) =>
    openGate({ pool: system.stores.pool, gate: gateNo(n) }, empty, await tokenFor(system.stores.pool, empty)),
  );
  const opened = await Promise.allSettled(openers);
  expect(opened.some(({ status }) => status === 'fulfilled')).toBe(true);
  for (const result of opened) {
    if (result.status === 'rejected') expect((result.reason as Error).constructor.name).toBe('StaleToken');
  }
  for (const { outcome } of await asking) expect(['ok', 'sold_out', 'not_loaded', 'loading']).toContain(outcome);
  await lost.checkRules();
  const sold = await Promise.all(Array.from({ length: 200 }, (_, n) => ask(gateNo(n), empty, `u${n}`)));
  expect(sold.filter(({ outcome }) => outcome === 'ok' || outcome === 'dup')).toHaveLength(20);
  expect(await lost.read()).toMatchObject({ stock: 0, held: 20 });
});

/** Redis comes back empty: nobody is told yes or "sold out", and the gate is built again from the ledger. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StaleToken } from '../../src/domain/outcomes.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { newMemory } from '../../src/keeper/keeper.ts';
import { rebuild, rebuildWhenDrained } from '../../src/keeper/rebuild.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { openGate, tokenFor } from '../../src/operations/open.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { rebuildOptions } from '../../src/wiring.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { arrows } from './arrows.ts';
import * as h from './house.ts';

let house: h.House;
beforeAll(async () => {
  house = await h.openHouse();
});
afterAll(async () => {
  expect(await h.rejected(house)).toEqual([]);
  await h.expectSettled(house);
  await h.closeHouse(house);
});

const lose = (saleId: string) => house.redis.del(...gateKeys(saleId));
const open = async (at: h.House, saleId: string) => openGate(at.stores, saleId, await tokenFor(house.pool, saleId));
const heldBy = async (saleId: string, userId: string) => (await house.gate.hold(saleId, userId))?.reservationId;

describe(arrows.redisEmpty.when, () => {
  test('503 while it is lost; the keeper lets the queue drain first, so that no winner’s unit is sold again', async () => {
    const saleId = await h.newSale(house, { total: 3 });
    const ordered = await h.winOrder(house, saleId, 'ordered');
    const queued = await h.winQueued(house, saleId, 'queued');
    await lose(saleId);
    const memory = newMemory();
    for (let n = 0; n < 3; n += 1) {
      expect(await h.press(house, saleId, 'eve')).toMatchObject({ status: 503, word: 'gate_not_loaded' });
      expect(await h.press(house, saleId, 'ordered')).toMatchObject({ status: 503, word: 'gate_not_loaded' });
      await h.keep(house, memory);
    }
    await h.drain(house);
    await h.keep(house, memory);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 1, held: 2, forfeited: 0, sold: 2 });
    expect(await h.press(house, saleId, 'ordered')).toMatchObject({ word: 'dup', id: ordered.reservationId });
    expect(await h.press(house, saleId, 'queued')).toMatchObject({ word: 'dup', id: queued.reservationId });
    expect(await h.press(house, saleId, 'eve')).toMatchObject({ word: 'ok' });
    expect(await h.press(house, saleId, 'mallory')).toMatchObject({ word: 'sold_out' });
    await h.drain(house);
  });

  test('the wait is bounded, also when the queue cannot be asked', async () => {
    const saleId = await h.newSale(house, { total: 3 });
    const queued = await h.winQueued(house, saleId, 'queued');
    await lose(saleId);
    const options = rebuildOptions(house.config);
    const away = { ...options, queueUrl: `${options.queueUrl}-that-is-not-there` };
    const now = performance.now();
    for (const ask of [options, away]) {
      expect(await rebuildWhenDrained(house.stores, house.sqs, saleId, now, ask)).toBe('draining');
    }
    const longAgo = now - options.drainMs;
    expect(await rebuildWhenDrained(house.stores, house.sqs, saleId, longAgo, away)).toBe('opened');
    expect(await h.books(house, saleId)).toMatchObject({ stock: 3, held: 0 });
    await h.drain(house); // what it did not wait for: there is room, and the hold is adopted
    await h.keep(house);
    expect(await heldBy(saleId, 'queued')).toBe(queued.reservationId);
  });

  test('the command waits by itself, and then opens it', async () => {
    const saleId = await h.newSale(house, { total: 3 });
    await h.winQueued(house, saleId, 'queued');
    await lose(saleId);
    const [answer] = await Promise.all([
      rebuild(house.stores, house.sqs, saleId, rebuildOptions(house.config)),
      h.drain(house),
    ]);
    expect(answer).toBe('opened');
    expect(await h.books(house, saleId)).toMatchObject({ stock: 2, held: 1, sold: 1 });
  });

  test.each(['begin', 'chunk', 'open'] as const)(
    'a loader that died after its %s: the next one begins anew',
    async (step) => {
      const saleId = await h.newSale(house, { total: 9 });
      const holds: Hold[] = [];
      for (let n = 0; n < 4; n += 1) holds.push(await h.winOrder(house, saleId, `buyer-${n}`));
      await lose(saleId);
      const dies = async (act: Promise<unknown>) => {
        await act;
        throw new Error('died');
      };
      const dying = h.withGate(house, {
        [step]: (...args: never[]) => dies((house.gate[step] as (...them: never[]) => Promise<unknown>)(...args)),
      });
      await expect(open(dying, saleId)).rejects.toThrow('died');
      if (step !== 'open') {
        expect(await h.press(house, saleId, 'eve'), 'half-loaded').toMatchObject({ word: 'gate_not_loaded' });
      }
      // What it had loaded may have ended since.
      const [gone] = holds;
      if (gone) await cancelReservation(house.stores, gone);
      await h.keep(house);
      expect(await h.books(house, saleId)).toMatchObject({ stock: 6, held: 3, sold: 3 });
      expect(await heldBy(saleId, 'buyer-0')).toBeUndefined();
    },
  );

  test('a live gate is never overwritten: not by the keeper, not by the command, not by whoever opens it', async () => {
    const saleId = await h.newSale(house);
    await h.winOrder(house, saleId, 'ann');
    const held = await h.win(house, saleId, 'bob'); // which the ledger knows nothing of
    const before = await house.redis.hgetall(gateKeys(saleId)[4]);
    expect(await open(house, saleId)).toBe('live');
    expect(await rebuild(house.stores, house.sqs, saleId, rebuildOptions(house.config))).toBe('live');
    const options = rebuildOptions(house.config);
    expect(await rebuildWhenDrained(house.stores, house.sqs, saleId, 0, options)).toBe('live');
    expect(await house.redis.hgetall(gateKeys(saleId)[4])).toEqual(before);
    expect(await heldBy(saleId, 'bob')).toBe(held.reservationId);
    await h.resendMarked(house, saleId);
  });

  test('several at once, while orders come and end: one right result, every time', async () => {
    const saleId = await h.newSale(house, { total: 100 });
    const live = new Map<string, Hold>();
    for (let round = 0; round < 15; round += 1) {
      for (let n = 0; n < 3; n += 1) {
        const hold = await h.winOrder(house, saleId, `buyer-${round}-${n}`);
        live.set(hold.userId, hold);
      }
      const [gone] = [...live.values()];
      const comes = h.madeUp(saleId, `late-${round}`);
      await lose(saleId);
      const [cancelled, recorded, ...loaders] = await Promise.allSettled([
        gone && cancelReservation(house.stores, gone),
        recordHolds(house.stores, [comes]),
        ...Array.from({ length: 3 }, () => open(house, saleId)),
      ]);
      expect([cancelled.status, recorded.status]).toEqual(['fulfilled', 'fulfilled']);
      const refused = loaders.flatMap((loader) => (loader.status === 'rejected' ? [loader.reason as unknown] : []));
      expect(refused.filter((error) => !(error instanceof StaleToken))).toEqual([]);
      if (gone) live.delete(gone.userId);
      const users = [...live.keys()];
      const held = await house.gate.holdsOf(saleId, users);
      expect(held.map((hold) => hold?.reservationId)).toEqual([...live.values()].map((hold) => hold.reservationId));
      live.set(comes.userId, comes); // recorded before it opened, or after: then it is adopted
      await h.keep(house);
      expect(await h.books(house, saleId)).toMatchObject({ held: live.size, sold: live.size, stock: 100 - live.size });
    }
  });

  test('what is recorded, and what ends, after it was read and before it opens, is in it and is not', async () => {
    const saleId = await h.newSale(house, { total: 9 });
    const ends = await h.winOrder(house, saleId, 'ends');
    await h.winOrder(house, saleId, 'stays');
    const comes = h.madeUp(saleId, 'a-buyer-who-was-passed-already', { qty: 2 });
    const again = h.madeUp(saleId, 'ends');
    await lose(saleId);
    let once = false;
    const during = h.withGate(house, {
      chunk: async (...args) => {
        const added = await house.gate.chunk(...args);
        if (once) return added;
        once = true;
        await recordHolds(house.stores, [comes]);
        await cancelReservation(house.stores, ends);
        expect(await h.orderOf(house, ends), 'nothing is given back while it loads').toMatchObject({ marked: false });
        await recordHolds(house.stores, [again]);
        return added;
      },
    });
    expect(await open(during, saleId)).toBe('opened');
    expect(await heldBy(saleId, comes.userId)).toBe(comes.reservationId);
    expect(await heldBy(saleId, 'ends')).toBe(again.reservationId);
    await sweep(house.stores, 100);
    expect(await h.books(house, saleId)).toMatchObject({ stock: 5, held: 4, sold: 4 });
  });

  test('only part of it is lost: that is a lost gate too', async () => {
    for (const key of [0, 1, 2, 4] as const) {
      const saleId = await h.newSale(house, { total: 5 });
      await h.winOrder(house, saleId, 'ann', 2);
      await house.redis.del(gateKeys(saleId)[key]);
      expect(await h.press(house, saleId, 'eve')).toMatchObject({ word: 'gate_not_loaded' });
      await h.keep(house);
      expect(await h.books(house, saleId)).toMatchObject({ stock: 3, held: 2, sold: 2 });
    }
  });
});

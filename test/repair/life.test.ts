/** The life of a sale, from before its start to after its close, as buyers, keeper and stores see it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { newMemory } from '../../src/keeper/keeper.ts';
import { rebuild } from '../../src/keeper/rebuild.ts';
import { changeSale as writeSale } from '../../src/ledger/sales.ts';
import { closeSale, SaleConflict, setState } from '../../src/operations/sales.ts';
import { rebuildOptions } from '../../src/wiring.ts';
import * as h from './house.ts';

let house: h.House;
/** Refused winners of whom the gate had forgotten that they won. */
const excused = new Set<string>();
beforeAll(async () => {
  house = await h.openHouse();
});
afterAll(async () => {
  expect((await h.rejected(house)).filter((id) => !excused.has(id))).toEqual([]);
  await h.expectSettled(house);
  await h.closeHouse(house);
});

const refusal = (act: Promise<unknown>) =>
  act.then(
    () => 'done',
    (error: unknown) => {
      if (error instanceof SaleConflict) return error.code;
      throw error;
    },
  );
const keysOf = async (saleId: string) => house.redis.exists(...gateKeys(saleId));
const stateOf = async (saleId: string) =>
  (await house.app.inject({ url: `/sales/${saleId}` })).json<{ state: string }>().state;

test('scheduled, open, paused, open, ended, closed: each as it is told, and as it is at the gate', async () => {
  const saleId = await h.newSale(house, { startsAt: new Date(Date.now() + 3_600_000).toISOString() });
  expect(await stateOf(saleId)).toBe('scheduled');
  expect(await h.press(house, saleId, 'ann')).toMatchObject({ status: 409, word: 'not_started' });
  await h.keep(house); // a keeper’s passes change nothing of it
  const start = Date.now() + 300;
  await h.changeSale(house, saleId, { startsAt: new Date(start).toISOString() });
  await h.until(async () => (await h.press(house, saleId, 'ann')).word === 'ok');
  expect(Date.now()).toBeGreaterThanOrEqual(start);
  await h.drain(house);
  await house.directory.refresh();
  await h.until(async () => (await stateOf(saleId)) === 'open'); // figures are a second old at most

  const sees = { open: 'ok', paused: 'paused', ended: 'ended' } as const;
  for (const [n, state] of (['paused', 'open', 'paused', 'ended'] as const).entries()) {
    await setState(house.stores, saleId, state);
    await house.directory.refresh();
    await h.keep(house);
    await h.until(async () => (await stateOf(saleId)) === state);
    expect(await h.press(house, saleId, `buyer-${n}`)).toMatchObject({ word: sees[state] });
    expect(await h.press(house, saleId, 'ann'), 'who holds is told so, whatever it is').toMatchObject({ word: 'dup' });
  }
  for (const state of ['open', 'paused'] as const) {
    expect(await refusal(setState(house.stores, saleId, state)), 'what has ended stays ended').toBe('ended');
  }
  await h.drain(house);
});

test('its creator died once the gate was open: it is changed like any other, and the ledger hears of it', async () => {
  const saleId = 'half-created';
  const dying = h.withGate(house, {
    open: async (...args) => {
      await house.gate.open(...args);
      throw new Error('died');
    },
  });
  await expect(h.changeSale(dying, saleId, { total: 5 })).rejects.toThrow('died');
  expect((await h.saleOf(house, saleId)).openedAt).toBeNull();
  const hold = await h.winQueued(house, saleId, 'ann', 3);
  await setState(house.stores, saleId, 'paused');
  expect(await house.gate.figures(saleId), 'at the gate at once').toMatchObject({ state: 'paused' });
  const shrink = () => refusal(h.changeSale(house, saleId, { total: 2 }));
  expect(await shrink(), 'the gate is asked, which knows of a hold that the ledger does not').toBe('total_too_low');
  await h.keep(house);
  expect((await h.saleOf(house, saleId)).openedAt).not.toBeNull();
  await h.drain(house);
  expect(await h.orderOf(house, hold)).toMatchObject({ status: 'PENDING_PAYMENT' });
});

describe('close', () => {
  test('is refused while anything is unpaid, unqueued, without its order, or not ended; then it removes the gate', async () => {
    const saleId = await h.newSale(house);
    const close = () => refusal(closeSale(house.stores, saleId));
    const [paid, unpaid] = [await h.winOrder(house, saleId, 'paid'), await h.winOrder(house, saleId, 'unpaid')];
    await h.pay(house, paid);
    expect(await close(), 'open').toBe('not_settled');
    const marked = await h.win(house, saleId, 'marked');
    await setState(house.stores, saleId, 'ended');
    expect(await close(), 'unpaid').toBe('not_settled');
    await h.pay(house, unpaid);
    expect(await close(), 'marked, without an order').toBe('not_settled');
    await house.gate.queued(saleId, marked);
    expect(await close(), 'in the queue, without an order').toBe('not_settled');
    await h.send(house, marked);
    await h.drain(house);
    expect(await close(), 'an order that is not paid').toBe('not_settled');
    await h.pay(house, marked);
    expect(await close()).toBe('done');
    expect(await close(), 'again').toBe('done');
    expect(await keysOf(saleId)).toBe(0);
    expect(await h.books(house, saleId)).toMatchObject({ sold: 3 });
    await house.directory.refresh();
    expect(await stateOf(saleId)).toBe('closed');
    for (const buyer of ['paid', 'eve']) {
      expect(await h.press(house, saleId, buyer)).toMatchObject({ status: 409, word: 'ended' });
    }
    const url = `/sales/${saleId}/reservations/${paid.reservationId}?userId=paid`;
    expect((await house.app.inject({ url })).json(), 'what was bought can still be seen').toMatchObject({
      status: 'PAID',
    });
  });

  test('the keeper never rebuilds a closed sale, nor does the command', async () => {
    const saleId = await h.newSale(house);
    await h.pay(house, await h.winOrder(house, saleId, 'ann'));
    await setState(house.stores, saleId, 'ended');
    await closeSale(house.stores, saleId);
    const memory = newMemory();
    for (let n = 0; n < 3; n += 1) await h.keep(house, memory);
    await expect(rebuild(house.stores, house.sqs, saleId, rebuildOptions(house.config))).rejects.toThrow(/closed/);
    expect(await refusal(h.changeSale(house, saleId)), 'changed').toBe('ended');
    expect(await refusal(setState(house.stores, saleId, 'ended')), 'ended again').toBe('ended');
    expect(await keysOf(saleId)).toBe(0);
    expect(memory.lostSince.size).toBe(0);
  });

  test('a lost gate is rebuilt first, ended as it is', async () => {
    const saleId = await h.newSale(house);
    await h.pay(house, await h.winOrder(house, saleId, 'ann'));
    await setState(house.stores, saleId, 'ended');
    await house.redis.del(...gateKeys(saleId));
    expect(await refusal(closeSale(house.stores, saleId))).toBe('gate_not_loaded');
    await h.keep(house);
    expect(await h.press(house, saleId, 'eve')).toMatchObject({ word: 'ended' });
    expect(await refusal(closeSale(house.stores, saleId))).toBe('done');
  });

  test('died after the gate was removed: the keeper rebuilds it, and it can be closed again', async () => {
    const saleId = await h.newSale(house);
    await h.pay(house, await h.winOrder(house, saleId, 'ann'));
    await setState(house.stores, saleId, 'ended');
    const dying = h.withGate(house, {
      remove: async (sale) => {
        await house.gate.remove(sale);
        throw new Error('died');
      },
    });
    await expect(closeSale(dying.stores, saleId)).rejects.toThrow('died');
    await h.keep(house);
    expect(await h.books(house, saleId)).toMatchObject({ held: 1, sold: 1 });
    expect(await refusal(closeSale(house.stores, saleId))).toBe('done');
  });

  test('closed while a keeper rebuilds it: nothing of a gate stays', async () => {
    const saleId = await h.newSale(house);
    await h.pay(house, await h.winOrder(house, saleId, 'ann'));
    await setState(house.stores, saleId, 'ended');
    await house.redis.del(...gateKeys(saleId));
    const during = h.withGate(house, {
      begin: async (...args) => {
        const sale = await h.saleOf(house, saleId);
        await writeSale(house.pool, { ...sale, state: 'closed', settings: sale.settings + 1 });
        return house.gate.begin(...args);
      },
    });
    await expect(rebuild(during.stores, house.sqs, saleId, rebuildOptions(house.config))).rejects.toThrow(
      /no open sale/,
    );
    expect(await keysOf(saleId)).toBe(0);
  });

  test('a message that comes after the close, of a hold that the gate forgot: nothing stays open', async () => {
    const saleId = await h.newSale(house);
    const goBack = await h.remember(house, saleId);
    const late = await h.winQueued(house, saleId, 'late');
    await goBack();
    await setState(house.stores, saleId, 'ended');
    await closeSale(house.stores, saleId);
    await h.drain(house);
    expect(await h.orderOf(house, late)).toMatchObject({ status: 'REJECTED', reason: 'no_room' });
    excused.add(late.reservationId);
  });
});

test('a keeper’s pass on a sale in each state is quiet', async () => {
  const before = house.log.length;
  await h.keep(house);
  expect(house.log.slice(before).filter(({ level }) => level >= 40)).toEqual([]);
});

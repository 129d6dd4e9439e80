/** adopt.lua, settle.lua, and the tokens that fence every script of the keeper. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { holdText, idOf, inOrder, Probe, settings, type Settings } from './probe.ts';
import { ownRedis } from './shared.ts';

const redis = ownRedis();
const opened = (but: Partial<Settings> = {}, token = 1) => new Probe(redis.client).open(but, token);

/** A gate with one unit forfeited, and nothing else. */
async function withForfeited(units: number, total = 10): Promise<Probe> {
  const probe = await opened({ total });
  const hold = await probe.win('gone', units);
  await probe.call('forfeit', '', 'gone', idOf(hold));
  return probe;
}

describe('adopt', () => {
  test('writes holds and receipts, no marks; the units come from the stock', async () => {
    const probe = await opened();
    const hold = holdText({ qty: 3 });
    expect(await probe.call('adopt', '', 'ann', hold, 'bob', holdText())).toEqual(['loaded', 'adopted', 'adopted']);
    const now = await probe.read();
    expect(now).toMatchObject({ stock: 6, held: 4, forfeited: 0, unqueued: [], buyers: ['ann', 'bob'], version: 1 });
    expect(now.holds.get('ann')).toBe(hold);
    expect(await probe.reserve({ user: 'ann' })).toEqual([`dup|${hold}`]);
  });

  test('what was forfeited goes first, then the stock', async () => {
    const probe = await withForfeited(2);
    await probe.call('adopt', '', 'ann', holdText({ qty: 1 }));
    expect(await probe.read()).toMatchObject({ forfeited: 1, stock: 8, held: 1 });
    await probe.call('adopt', '', 'bob', holdText({ qty: 3 }));
    expect(await probe.read()).toMatchObject({ forfeited: 0, stock: 6, held: 4 });
  });

  test('the stock may go below zero: the units are owned', async () => {
    const probe = await withForfeited(1, 2);
    await probe.win('ann');
    await probe.call('adopt', '', 'bob', holdText({ qty: 4 }));
    expect(await probe.read()).toMatchObject({ forfeited: 0, stock: -3, held: 5 });
    expect(await probe.reserve({ user: 'cleo' })).toEqual(['sold_out']);
    await probe.call('release', '', 'ann', idOf((await probe.read()).holds.get('ann')));
    expect((await probe.read()).stock).toBe(-2);
  });

  test('held: the gate has it. other: the buyer has another hold. Neither changes anything', async () => {
    const probe = await opened();
    const hold = await probe.win('ann', 2);
    const before = await probe.dump();
    expect(await probe.call('adopt', '', 'ann', hold, 'ann', holdText())).toEqual(['loaded', 'held', 'other']);
    expect(await probe.dump()).toEqual(before);
  });

  test('a batch with repetitions', async () => {
    const probe = await opened();
    const [ann, anew, bob] = [holdText({ qty: 2 }), holdText(), holdText()];
    const reply = await probe.call('adopt', '', 'ann', ann, 'ann', ann, 'ann', anew, 'bob', bob);
    expect(reply).toEqual(['loaded', 'adopted', 'held', 'other', 'adopted']);
    expect(await probe.read()).toMatchObject({ held: 3, stock: 7 });
  });

  test('nothing to adopt', async () => {
    const probe = await opened();
    const before = await probe.dump();
    expect(await probe.call('adopt', '')).toEqual(['loaded']);
    expect(await probe.dump()).toEqual(before);
  });

  test('as many as one pass brings, with every digit', async () => {
    const probe = await opened({ total: 2000 });
    const hold = holdText({ amount: Number.MAX_SAFE_INTEGER, at: 9_999_999_999_998, expires: 9_999_999_999_999 });
    const holds = Array.from({ length: 2000 }, (_, n) => [`u${n}`, hold]).flat();
    await probe.call('adopt', '', ...holds);
    const now = await probe.read();
    expect(now).toMatchObject({ held: 2000, stock: 0 });
    expect(now.holds.get('u1999')).toBe(hold);
  });
});

describe('settle', () => {
  const generation = async (probe: Probe) => (await probe.read()).fields.generation ?? '';

  test('what was forfeited is free after all', async () => {
    const probe = await withForfeited(3);
    expect(await probe.call('settle', '', await generation(probe), 2)).toEqual(['settled', 2]);
    expect(await probe.read()).toMatchObject({ stock: 9, forfeited: 1, held: 0 });
    expect(await probe.call('settle', '', await generation(probe), 1)).toEqual(['settled', 1]);
    expect(await probe.read()).toMatchObject({ stock: 10, forfeited: 0 });
  });

  test('only what was forfeited when the pass began', async () => {
    const probe = await withForfeited(1);
    const hold = await probe.win('late', 2);
    await probe.call('forfeit', '', 'late', idOf(hold));
    expect(await probe.call('settle', '', await generation(probe), 1)).toEqual(['settled', 1]);
    expect(await probe.read()).toMatchObject({ stock: 8, forfeited: 2 });
  });

  test('nothing when another generation runs, or fewer are forfeited by now', async () => {
    const probe = await withForfeited(2);
    const before = await probe.dump();
    expect(await probe.call('settle', '', 'other', 2)).toEqual(['changed']);
    expect(await probe.call('settle', '', await generation(probe), 3)).toEqual(['changed']);
    expect(await probe.call('settle', '', await generation(probe), 0)).toEqual(['settled', 0]);
    expect(await probe.dump()).toEqual(before);
  });
});

/** Every script that a keeper calls, with arguments after the token that change nothing by themselves. */
const FENCED: Record<string, (string | number)[]> = {
  release: ['nobody', randomUUID()],
  forfeit: ['nobody', randomUUID()],
  adopt: [],
  settle: ['no-generation', 0],
  unqueued: [1000, 10],
  configure: [...inOrder(settings()), 'ask'],
};

describe.each(Object.entries(FENCED))('the token of %s', (name, args) => {
  const first = (reply: unknown) => (reply as string[])[0];

  test('an older one is refused and nothing is done; the same and a newer one pass', async () => {
    const probe = await opened({}, 5);
    const before = await probe.dump();
    expect(await probe.call(name, 4, ...args)).toEqual(['stale']);
    expect(await probe.dump()).toEqual(before);
    expect(first(await probe.call(name, 5, ...args))).not.toBe('stale');
    expect(await probe.dump()).toEqual(before);
    expect(first(await probe.call(name, 6, ...args))).not.toBe('stale');
  });

  test('a newer one is remembered: the older one is refused from then on, by every script', async () => {
    const probe = await opened({}, 5);
    await probe.call(name, 9, ...args);
    expect((await probe.read()).fields.token).toBe('9');
    for (const [other, its] of Object.entries(FENCED)) {
      expect(await probe.call(other, 8, ...its), other).toEqual(['stale']);
      expect(first(await probe.call(other, 9, ...its)), other).not.toBe('stale');
    }
  });

  test('who comes without one is never fenced and fences nobody', async () => {
    const probe = await opened({}, 5);
    const before = await probe.dump();
    expect(first(await probe.call(name, '', ...args))).not.toBe('stale');
    expect(await probe.dump()).toEqual(before);
  });

  test('large tokens are told apart', async () => {
    const probe = await opened({}, 9_007_199_254_740_000);
    expect(await probe.call(name, 9_007_199_254_739_999, ...args)).toEqual(['stale']);
    await probe.call(name, 9_007_199_254_740_001, ...args);
    expect((await probe.read()).fields.token).toBe('9007199254740001');
  });

  test('where there is no gate, or half of one, it is not remembered', async () => {
    const probe = new Probe(redis.client);
    expect(await probe.call(name, 9, ...args)).toEqual(['not_loaded']);
    expect(await redis.client.exists(...Object.values(probe.keys))).toBe(0);
    await probe.call('open', 'begin', 7);
    expect(await probe.call(name, 9, ...args)).toEqual(['loading']);
    expect((await probe.read()).fields.token).toBe('7');
  });
});

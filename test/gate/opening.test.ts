/** open.lua: begin, chunk, open. */
import { describe, expect, test } from 'vitest';
import { holdText, idOf, Probe, settings, type Settings } from './probe.ts';
import { ownRedis } from './shared.ts';

const redis = ownRedis();
const opened = (but: Partial<Settings> = {}, token = 1) => new Probe(redis.client).open(but, token);
const fresh = () => new Probe(redis.client);

test('a sale from the ledger: the holds that it has, the rest in stock', async () => {
  const probe = fresh();
  const [ann, bob, cleo] = [holdText({ qty: 2 }), holdText(), holdText({ qty: 4 })];
  expect(await probe.call('open', 'begin', 3)).toBe('begun');
  expect(await probe.call('open', 'chunk', 3, 'ann', ann, 'bob', bob)).toBe('added');
  expect(await probe.call('open', 'chunk', 3, 'cleo', cleo)).toBe('added');
  expect((await probe.read()).stock).toBeUndefined();
  expect(await probe.openStep(3, { total: 10, settings: 8 })).toBe('opened');
  const now = await probe.read();
  expect(now).toMatchObject({ stock: 3, held: 7, forfeited: 0, total: 10, version: 0, unqueued: [] });
  expect(now.fields).toMatchObject({ generation: '3', token: '3', settings: '8', state: 'open' });
  expect(Object.fromEntries(now.holds)).toEqual({ ann, bob, cleo });
  expect(await probe.reserve({ user: 'bob' }, { user: 'd', qty: 4 }, { user: 'e', qty: 3 })).toEqual([
    `dup|${bob}`,
    'sold_out',
    expect.stringMatching(/^ok\|/) as string,
  ]);
});

test('every setting as it was given', async () => {
  const but = { settings: 3, state: 'paused', startsAt: 1, endsAt: 9_999_999_999_999, total: 0, currency: 'JPY' };
  const { fields } = await (await opened(but, 12)).read();
  const given = Object.entries({
    ...settings(but),
    ...{ held: 0, forfeited: 0, version: 0, generation: 12, token: 12 },
  });
  expect(fields).toEqual(Object.fromEntries(given.map(([name, value]) => [name, String(value)])));
});

test('more held than there is: opened all the same, with less than nothing in stock', async () => {
  const probe = fresh();
  await probe.call('open', 'begin', 1);
  await probe.call('open', 'chunk', 1, 'ann', holdText({ qty: 4 }));
  await probe.openStep(1, { total: 1 });
  expect((await probe.read()).stock).toBe(-3);
});

describe('a live gate is never overwritten', () => {
  test('begin answers live, whatever its token', async () => {
    const probe = await opened({}, 5);
    await probe.win('ann');
    const before = await probe.dump();
    for (const token of [4, 5, 6]) expect(await probe.call('open', 'begin', token)).toBe('live');
    expect(await probe.dump()).toEqual(before);
  });

  test('a late chunk or open of the same or another token changes nothing', async () => {
    const probe = await opened({}, 5);
    await probe.win('ann');
    const before = await probe.dump();
    for (const token of [4, 5, 6]) {
      expect(await probe.call('open', 'chunk', token, 'bob', holdText())).toBe('stale');
      expect(await probe.openStep(token, { total: 99 })).toBe(token === 5 ? 'opened' : 'stale');
    }
    expect(await probe.dump()).toEqual(before);
  });

  test('not even one that is sold out, paused or ended', async () => {
    for (const but of [{ total: 0 }, { state: 'paused' }, { state: 'ended' }]) {
      expect(await (await opened(but)).call('open', 'begin', 9)).toBe('live');
    }
  });
});

describe('tokens', () => {
  test('a newer one takes a half-loaded gate over and begins anew; the older one is refused from then on', async () => {
    const probe = fresh();
    await probe.call('open', 'begin', 5);
    await probe.call('open', 'chunk', 5, 'ann', holdText({ qty: 3 }));
    expect(await probe.call('open', 'begin', 6)).toBe('begun');
    expect(await probe.read()).toMatchObject({ held: 0, buyers: [], holds: new Map() });
    const before = await probe.dump();
    expect(await probe.call('open', 'begin', 5)).toBe('stale');
    expect(await probe.call('open', 'chunk', 5, 'ann', holdText())).toBe('stale');
    expect(await probe.openStep(5)).toBe('stale');
    expect(await probe.dump()).toEqual(before);
    await probe.call('open', 'chunk', 6, 'bob', holdText());
    expect(await probe.openStep(6)).toBe('opened');
    expect((await probe.read()).buyers).toEqual(['bob']);
  });

  test('the same one begins anew', async () => {
    const probe = fresh();
    await probe.call('open', 'begin', 5);
    await probe.call('open', 'chunk', 5, 'ann', holdText());
    expect(await probe.call('open', 'begin', 5)).toBe('begun');
    expect((await probe.read()).held).toBe(0);
  });

  test('one that has not begun cannot go on', async () => {
    const probe = fresh();
    expect(await probe.call('open', 'chunk', 5, 'ann', holdText())).toBe('stale');
    expect(await probe.openStep(5)).toBe('stale');
    expect(await redis.client.exists(...Object.values(probe.keys))).toBe(0);
    await probe.call('open', 'begin', 5);
    expect(await probe.call('open', 'chunk', 6, 'ann', holdText())).toBe('stale');
    expect(await probe.openStep(6)).toBe('stale');
  });
});

describe('replies that were lost, and steps that are sent again', () => {
  test('begin, chunk and open twice are once', async () => {
    const probe = fresh();
    const ann = holdText({ qty: 2 });
    for (let n = 0; n < 2; n += 1) expect(await probe.call('open', 'begin', 2)).toBe('begun');
    for (let n = 0; n < 2; n += 1) expect(await probe.call('open', 'chunk', 2, 'ann', ann)).toBe('added');
    expect(await probe.openStep(2)).toBe('opened');
    const hold = await probe.win('bob');
    expect(await probe.openStep(2)).toBe('opened');
    expect(await probe.read()).toMatchObject({ stock: 7, held: 3, buyers: ['ann', 'bob'] });
    expect((await probe.read()).holds.get('bob')).toBe(hold);
  });

  test('a buyer in two chunks, or twice in one, has the last hold, counted once', async () => {
    const probe = fresh();
    const last = holdText({ qty: 4 });
    await probe.call('open', 'begin', 2);
    await probe.call('open', 'chunk', 2, 'ann', holdText({ qty: 3 }), 'bob', holdText({ qty: 2 }));
    await probe.call('open', 'chunk', 2, 'ann', holdText({ qty: 1 }), 'ann', holdText({ qty: 2 }), 'ann', last);
    await probe.openStep(2);
    const { held, stock, holds } = await probe.read();
    expect({ held, stock, hold: holds.get('ann') }).toEqual({ held: 6, stock: 4, hold: last });
  });

  test('an empty chunk, and a large one', async () => {
    const probe = fresh();
    await probe.call('open', 'begin', 2);
    expect(await probe.call('open', 'chunk', 2)).toBe('added');
    const holds = Array.from({ length: 2000 }, (_, n) => [`u${n}`, holdText()]).flat();
    expect(await probe.call('open', 'chunk', 2, ...holds)).toBe('added');
    await probe.openStep(2, { total: 2500 });
    expect(await probe.read()).toMatchObject({ held: 2000, stock: 500 });
  });
});

describe('a gate that lost something is begun anew, and is not a gate meanwhile', () => {
  const keys = ['stock', 'buyers', 'holds', 'sale'] as const;
  test.each(keys)('without its %s', async (key) => {
    const probe = await opened({}, 5);
    await probe.call('release', '', 'bob', idOf(await probe.win('bob')));
    await probe.win('ann');
    await redis.client.del(probe.keys[key]);
    expect(await probe.reserve({ user: 'ann' })).toEqual(['not_loaded']);
    expect(await probe.call('open', 'begin', 6)).toBe('begun');
    const left = await redis.client.exists(...Object.values(probe.keys));
    expect(left, 'only the sale itself is left').toBe(1);
  });
});

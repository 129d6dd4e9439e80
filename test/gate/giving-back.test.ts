/** release.lua and forfeit.lua: a hold is taken away once, and only by its own reservation. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { holdText, idOf, Probe, type Settings } from './probe.ts';
import { ownRedis } from './shared.ts';

const redis = ownRedis();
const opened = (but: Partial<Settings> = {}) => new Probe(redis.client).open(but);
beforeEach(() => redis.client.flushdb()); // dumps are of the whole

const SCRIPTS = [
  { name: 'release', word: 'released', to: 'stock' },
  { name: 'forfeit', word: 'forfeited', to: 'forfeited' },
] as const;

describe.each(SCRIPTS)('$name', ({ name, word, to }) => {
  test('takes away receipt, hold and mark; the units go where they belong', async () => {
    const probe = await opened();
    const hold = await probe.win('ann', 3);
    await probe.win('bob', 2);
    const before = await probe.read();
    expect(await probe.call(name, '', 'ann', idOf(hold))).toEqual(['loaded', word]);
    const after = await probe.read();
    expect(after).toMatchObject({ held: 2, buyers: ['bob'], unqueued: ['bob'], version: before.version + 1 });
    expect(after[to]).toBe((before[to] ?? NaN) + 3);
  });

  test('again: nothing', async () => {
    const probe = await opened();
    const hold = await probe.win('ann');
    await probe.call(name, '', 'ann', idOf(hold));
    const before = await probe.dump();
    for (let n = 0; n < 3; n += 1)
      expect(await probe.call(name, '', 'ann', idOf(hold))).toEqual(['loaded', 'not_held']);
    expect(await probe.dump()).toEqual(before);
  });

  test('another reservation, another buyer, nobody: nothing', async () => {
    const probe = await opened();
    const [ann, bob] = [await probe.win('ann'), await probe.win('bob')];
    const before = await probe.dump();
    const receipts = ['ann', randomUUID(), 'ann', idOf(bob), 'bob', idOf(ann), 'cleo', idOf(ann), 'ann', ''];
    expect(await probe.call(name, '', ...receipts)).toEqual(['loaded', ...Array.from({ length: 5 }, () => 'not_held')]);
    expect(await probe.dump()).toEqual(before);
  });

  test('a hold without its receipt: nothing', async () => {
    const probe = await opened();
    const hold = await probe.win('ann');
    await probe.win('bob');
    await redis.client.srem(probe.keys.buyers, 'ann');
    const before = await probe.dump();
    const raw = new Probe(redis.client, probe.saleId);
    raw.checkRules = () => Promise.resolve(); // this test broke them itself
    expect(await raw.call(name, '', 'ann', idOf(hold))).toEqual(['loaded', 'not_held']);
    expect(await probe.dump()).toEqual(before);
  });

  test('a late second one of an old hold leaves the new hold its units', async () => {
    const probe = await opened({ total: 1 });
    const old = await probe.win('ann');
    expect(await probe.call('release', '', 'ann', idOf(old))).toEqual(['loaded', 'released']);
    const hold = await probe.win('ann');
    const before = await probe.dump();
    for (let n = 0; n < 2; n += 1) expect(await probe.call(name, '', 'ann', idOf(old))).toEqual(['loaded', 'not_held']);
    expect(await probe.dump()).toEqual(before);
    expect((await probe.read()).holds.get('ann')).toBe(hold);
  });

  test('a batch answers each by itself, and one that is in it twice once', async () => {
    const probe = await opened();
    const [ann, bob] = [await probe.win('ann', 2), await probe.win('bob')];
    const receipts = ['ann', idOf(ann), 'cleo', randomUUID(), 'ann', idOf(ann), 'bob', idOf(bob), 'bob', idOf(bob)];
    expect(await probe.call(name, '', ...receipts)).toEqual(['loaded', word, 'not_held', 'not_held', word, 'not_held']);
    const { stock, held, forfeited, version } = await probe.read();
    expect({ stock, held, forfeited, version }).toEqual({
      ...{ stock: to === 'stock' ? 10 : 7, held: 0, forfeited: to === 'stock' ? 0 : 3, version: 3 },
    });
  });

  test('the last hold: no key for holds is left, and that is a loaded gate', async () => {
    const probe = await opened();
    const hold = await probe.win('ann');
    await probe.call(name, '', 'ann', idOf(hold));
    expect(await redis.client.exists(probe.keys.holds, probe.keys.buyers, probe.keys.unqueued)).toBe(0);
    expect((await probe.reserve({ user: 'ann' }))[0]).toMatch(/^ok\|/);
  });

  test('a batch as large as the settings allow', async () => {
    const probe = new Probe(redis.client);
    const reply = (await probe.call(name, '', ...(await probe.openWith(2000)))) as string[];
    expect(reply.filter((answer) => answer === word)).toHaveLength(2000);
    expect((await probe.read())[to]).toBe(2000);
  });

  test('a batch that is too large for Redis does nothing at all', async () => {
    const probe = new Probe(redis.client);
    const receipts = await probe.openWith(9000);
    const before = await probe.dump();
    await expect(probe.call(name, '', ...receipts)).rejects.toThrow(/unpack/);
    expect(await probe.dump()).toEqual(before);
  });

  test('a large batch of what is not held is answered', async () => {
    const probe = await opened();
    const hold = await probe.win('ann');
    const receipts = Array.from({ length: 10_000 }, (_, n) => [`u${n}`, randomUUID()]).flat();
    const reply = (await probe.call(name, '', 'ann', idOf(hold), ...receipts)) as string[];
    expect([reply.length, reply[1], reply[2]]).toEqual([10_002, word, 'not_held']);
  });

  test('where there is no gate, or half of one', async () => {
    const probe = new Probe(redis.client);
    expect(await probe.call(name, '', 'ann', randomUUID())).toEqual(['not_loaded']);
    await probe.call('open', 'begin', 7);
    expect(await probe.call(name, '', 'ann', randomUUID())).toEqual(['loading']);
  });
});

test('a release where more is owned than there is: the stock rises, still below zero', async () => {
  const probe = await opened({ total: 1 });
  const hold = await probe.win('ann');
  await probe.call('adopt', '', 'bob', holdText({ qty: 3 }));
  expect(await probe.call('release', '', 'ann', idOf(hold))).toEqual(['loaded', 'released']);
  expect(await probe.read()).toMatchObject({ stock: -2, held: 3 });
});

test('a forfeited unit does not come back by a release', async () => {
  const probe = await opened({ total: 1 });
  const hold = await probe.win('ann');
  await probe.call('forfeit', '', 'ann', idOf(hold));
  expect(await probe.call('release', '', 'ann', idOf(hold))).toEqual(['loaded', 'not_held']);
  expect(await probe.read()).toMatchObject({ stock: 0, forfeited: 1, held: 0 });
  expect(await probe.reserve({ user: 'bob' })).toEqual(['sold_out']);
});

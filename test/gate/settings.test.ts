/** configure.lua: new settings for new holds, and never a unit more or less than the difference. */
import { describe, expect, test } from 'vitest';
import { idOf, Probe, settings, type Settings } from './probe.ts';
import { ownRedis } from './shared.ts';

const redis = ownRedis();
const opened = (but: Partial<Settings> = {}) => new Probe(redis.client).open(but);

test('every setting is applied, and touches new holds only', async () => {
  const probe = await opened();
  const old = await probe.win('ann', 2);
  const next = settings({
    ...{ settings: 2, state: 'open', startsAt: 1_000, endsAt: 9_999_999_999_999, total: 12, maxPerReservation: 6 },
    ...{ holdSeconds: 30, amount: 1_000_000_000_000, currency: 'EUR' },
  });
  expect(await probe.configure(next)).toEqual(['applied']);
  const { fields, stock, holds } = await probe.read();
  expect(fields).toMatchObject(Object.fromEntries(Object.entries(next).map(([name, value]) => [name, String(value)])));
  expect({ stock, held: fields.held }).toEqual({ stock: 10, held: '2' });
  expect(holds.get('ann')).toBe(old);
  const [, qty, reservedAt, expiresAt, amount] = (await probe.win('bob', 6)).split('|');
  expect([qty, Number(expiresAt) - Number(reservedAt), amount]).toEqual(['6', 30_000, '6000000000000']);
});

test('older settings are refused by name, the same version is applied already', async () => {
  const probe = await opened({ settings: 5 });
  const before = await probe.dump();
  expect(await probe.configure({ settings: 4, total: 99 })).toEqual(['older', 5]);
  expect(await probe.configure({ settings: 5, total: 99 })).toEqual(['applied']);
  expect(await probe.dump()).toEqual(before);
});

describe('total', () => {
  test('grows: the stock by the difference, also out of being sold out', async () => {
    const probe = await opened({ total: 1 });
    await probe.win('ann');
    expect(await probe.configure({ settings: 2, total: 3 })).toEqual(['applied']);
    expect(await probe.read()).toMatchObject({ total: 3, stock: 2, held: 1 });
  });

  test('shrinks down to what is taken, and no further', async () => {
    const probe = await opened({ total: 10 });
    await probe.win('ann', 3);
    await probe.call('forfeit', '', 'bob', idOf(await probe.win('bob', 2)));
    await probe.win('cleo');
    await probe.call('forfeit', '', 'cleo', idOf((await probe.read()).holds.get('cleo')));
    const before = await probe.dump();
    expect(await probe.configure({ settings: 2, total: 5 })).toEqual(['total_too_low', 6]);
    expect(await probe.dump()).toEqual(before);
    expect(await probe.configure({ settings: 2, total: 6 })).toEqual(['applied']);
    expect(await probe.read()).toMatchObject({ total: 6, stock: 0, held: 3, forfeited: 3 });
  });

  test('to nothing and back', async () => {
    const probe = await opened({ total: 10 });
    expect(await probe.configure({ settings: 2, total: 0 })).toEqual(['applied']);
    expect(await probe.reserve({ user: 'ann' })).toEqual(['sold_out']);
    expect(await probe.configure({ settings: 3, total: 1_000_000_000 })).toEqual(['applied']);
    expect((await probe.read()).stock).toBe(1_000_000_000);
  });

  test('grows where more is owned than there is: not yet enough, but more', async () => {
    const probe = await opened({ total: 1 });
    await probe.call('adopt', '', 'ann', `${'a'.repeat(36)}|4|1|2|500|EUR`);
    expect(await probe.configure({ settings: 2, total: 2 })).toEqual(['applied']);
    expect((await probe.read()).stock).toBe(-2);
    expect(await probe.configure({ settings: 3, total: 1 })).toEqual(['total_too_low', 4]);
  });
});

test('the currency is fixed while anything is held or forfeited', async () => {
  const probe = await opened();
  expect(await probe.configure({ settings: 2, currency: 'USD' })).toEqual(['applied']);
  const hold = await probe.win('ann');
  const before = await probe.dump();
  expect(await probe.configure({ settings: 3, currency: 'EUR' })).toEqual(['currency_fixed']);
  expect(await probe.dump()).toEqual(before);
  await probe.call('forfeit', '', 'ann', idOf(hold));
  expect(await probe.configure({ settings: 3, currency: 'EUR' })).toEqual(['currency_fixed']);
  expect(await probe.configure({ settings: 3, currency: 'USD' })).toEqual(['applied']);
});

test('pause and resume', async () => {
  const probe = await opened();
  await probe.configure({ settings: 2, state: 'paused' });
  expect(await probe.reserve({ user: 'ann' })).toEqual(['paused']);
  await probe.configure({ settings: 3, state: 'open' });
  expect((await probe.reserve({ user: 'ann' }))[0]).toMatch(/^ok\|/);
});

test('where there is no gate, or half of one', async () => {
  const probe = new Probe(redis.client);
  expect(await probe.configure()).toEqual(['not_loaded']);
  expect(await redis.client.exists(...Object.values(probe.keys))).toBe(0);
  await probe.call('open', 'begin', 7);
  expect(await probe.configure()).toEqual(['loading']);
});

describe('what the ledger has decided already is not refused', () => {
  test('a total below what is held: the stock goes below zero', async () => {
    const probe = await opened({ total: 10 });
    await probe.win('ann', 4);
    await probe.win('bob', 3);
    await probe.call('forfeit', '', 'bob', idOf((await probe.read()).holds.get('bob')));
    expect(await probe.configure({ settings: 2, total: 5 }, 'ask')).toEqual(['total_too_low', 7]);
    expect(await probe.configure({ settings: 2, total: 5 }, 'decided')).toEqual(['applied']);
    expect(await probe.read()).toMatchObject({ total: 5, stock: -2, held: 4, forfeited: 3 });
    expect(await probe.reserve({ user: 'cleo' })).toEqual(['sold_out']);
  });

  test('another currency: holds keep theirs', async () => {
    const probe = await opened();
    const hold = await probe.win('ann');
    expect(await probe.configure({ settings: 2, currency: 'USD' }, 'decided')).toEqual(['applied']);
    expect((await probe.read()).holds.get('ann')).toBe(hold);
    expect(await probe.win('bob')).toMatch(/\|USD$/);
  });

  test('but an older version is', async () => {
    const probe = await opened({ settings: 3 });
    expect(await probe.configure({ settings: 2 }, 'decided')).toEqual(['older', 3]);
  });
});

/** Keys that are of another type, or gone: an error or `not_loaded`, and nothing half done. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { holdText, idOf, inOrder, Probe, settings } from './probe.ts';
import { ownRedis } from './shared.ts';

const redis = ownRedis();

const given = [...inOrder(settings({ settings: 9, total: 20 })), 'ask'];
/** Every script with arguments that would make it write, given ann's hold. */
const CALLS: Record<string, (hold: string) => (string | number)[]> = {
  reserve: () => ['batch', randomUUID(), 1, 'bob'],
  queued: (hold) => ['ann', idOf(hold)],
  unqueued: () => ['', 0, 10],
  release: (hold) => ['', 'ann', idOf(hold)],
  forfeit: (hold) => [99, 'ann', idOf(hold)],
  adopt: () => [99, 'bob', holdText()],
  settle: () => ['', '1', 1],
  configure: () => [99, ...given],
};
const KEYS = ['stock', 'buyers', 'holds', 'unqueued', 'sale'] as const;

/** A gate with holds, marks and something forfeited, of which no key is missing. */
async function full(): Promise<{ probe: Probe; hold: string }> {
  await redis.client.flushdb();
  const probe = await new Probe(redis.client).open();
  await probe.call('forfeit', '', 'gone', idOf(await probe.win('gone')));
  const hold = await probe.win('ann', 2);
  await probe.win('cleo');
  await redis.client.zincrby(probe.keys.unqueued, -1000, 'ann');
  return { probe, hold };
}

describe.each(Object.entries(CALLS))('%s', (name, args) => {
  test('would write here', async () => {
    const { probe, hold } = await full();
    const before = await probe.dump();
    await probe.call(name, ...args(hold));
    expect(await probe.dump()).not.toEqual(before);
  });

  test.each(KEYS)('%s of another type: an error, and nothing changed at all', async (key) => {
    const { probe, hold } = await full();
    await redis.client.del(probe.keys[key]);
    await redis.client.rpush(probe.keys[key], 'not', 'ours');
    const before = await probe.dump();
    const raw = new Probe(redis.client, probe.saleId);
    raw.checkRules = () => Promise.resolve(); // there is no gate to be read
    await expect(raw.call(name, ...args(hold))).rejects.toThrow(/WRONGTYPE/);
    expect(await probe.dump()).toEqual(before);
  });

  test.each(['stock', 'buyers', 'holds', 'sale'] as const)('%s gone: not loaded, and nothing changed', async (key) => {
    const { probe, hold } = await full();
    await redis.client.del(probe.keys[key]);
    const before = await probe.dump();
    const reply = await probe.call(name, ...args(hold));
    if (name === 'reserve') expect(reply).toEqual(['batch', 'not_loaded']);
    else if (name !== 'queued') expect(reply).toEqual(['not_loaded']);
    if (name !== 'queued') expect(await probe.dump()).toEqual(before); // marks may go: a hold is what counts
  });
});

test.each(['many', '1.5', ''])('a stock of “%s” is no stock: not loaded, and nothing changed', async (text) => {
  const { probe, hold } = await full();
  await redis.client.set(probe.keys.stock, text);
  const before = await probe.dump();
  const raw = new Probe(redis.client, probe.saleId);
  raw.checkRules = () => Promise.resolve(); // there is no sum without a stock
  for (const name of Object.keys(CALLS).filter((name) => name !== 'queued')) {
    const reply = (await raw.call(name, ...(CALLS[name]?.(hold) ?? []))) as string[];
    expect(reply.at(-1), name).toBe('not_loaded');
    expect(await probe.dump(), name).toEqual(before);
  }
  expect(await raw.call('open', 'begin', 100)).toBe('begun');
});

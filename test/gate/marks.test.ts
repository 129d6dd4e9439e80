/** queued.lua and unqueued.lua: holds that the queue may not have. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { idOf, Probe, type Settings } from './probe.ts';
import { ownRedis } from './shared.ts';

const redis = ownRedis();
const opened = (but: Partial<Settings> = {}) => new Probe(redis.client).open(but);

const GRACE = 60_000;
const due = (probe: Probe, limit = 100, token: number | '' = '') => probe.call('unqueued', token, GRACE, limit);
/** As if the mark had been made that much earlier. */
const age = (probe: Probe, user: string, ms: number) => redis.client.zincrby(probe.keys.unqueued, -ms, user);

test('queued takes marks off, of these reservations only, once', async () => {
  const probe = await opened();
  const [ann, bob] = [await probe.win('ann'), await probe.win('bob')];
  expect(await probe.call('queued', 'ann', randomUUID(), 'nobody', idOf(ann))).toBe(0);
  expect((await probe.read()).unqueued).toEqual(['ann', 'bob']);
  expect(await probe.call('queued', 'ann', idOf(ann), 'bob', idOf(bob), 'ann', idOf(ann))).toBe(2);
  expect((await probe.read()).unqueued).toEqual([]);
  expect(await probe.call('queued', 'ann', idOf(ann))).toBe(0);
});

test('queued of an old hold leaves the mark of the new one', async () => {
  const probe = await opened();
  const old = await probe.win('ann');
  await probe.call('release', '', 'ann', idOf(old));
  await probe.win('ann');
  expect(await probe.call('queued', 'ann', idOf(old))).toBe(0);
  expect((await probe.read()).unqueued).toEqual(['ann']);
});

test('queued where there is no gate', async () => {
  const probe = new Probe(redis.client);
  expect(await probe.call('queued', 'ann', randomUUID())).toBe(0);
  await probe.call('open', 'begin', 1);
  expect(await probe.call('queued', 'ann', randomUUID())).toBe(0);
});

test('unqueued hands out what is older than the grace, once per grace', async () => {
  const probe = await opened();
  const hold = await probe.win('ann');
  await probe.win('bob');
  expect(await due(probe)).toEqual(['loaded']);
  await age(probe, 'ann', GRACE + 1);
  expect(await due(probe)).toEqual(['loaded', 'ann', hold]);
  expect(await due(probe)).toEqual(['loaded']);
  await age(probe, 'ann', GRACE + 1);
  expect(await due(probe)).toEqual(['loaded', 'ann', hold]);
  expect((await probe.read()).unqueued.sort()).toEqual(['ann', 'bob']);
});

test('unqueued hands out the oldest first, as many as asked for', async () => {
  const probe = await opened();
  for (const user of ['a', 'b', 'c']) await probe.win(user);
  await age(probe, 'b', GRACE * 3);
  await age(probe, 'a', GRACE * 2);
  await age(probe, 'c', GRACE * 4);
  const users = (reply: unknown) => (reply as string[]).slice(1).filter((_, n) => n % 2 === 0);
  expect(users(await due(probe, 2))).toEqual(['c', 'b']);
  expect(users(await due(probe, 2))).toEqual(['a']);
});

test('a mark without a hold is dropped, not handed out', async () => {
  const probe = await opened();
  await redis.client.zadd(probe.keys.unqueued, 1, 'ghost');
  expect(await probe.call('unqueued', '', GRACE, 100)).toEqual(['loaded']);
  expect((await probe.read()).unqueued).toEqual([]);
});

test('unqueued where there is no gate, or half of one', async () => {
  const probe = new Probe(redis.client);
  expect(await due(probe)).toEqual(['not_loaded']);
  await probe.call('open', 'begin', 7);
  expect(await due(probe)).toEqual(['loading']);
});

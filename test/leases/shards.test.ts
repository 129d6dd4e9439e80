/** Which shard a sale belongs to: vectors that were worked out by other programs, since every keeper must agree. */
import { expect, test } from 'vitest';
import { SHARDS, shardOf } from '../../src/domain/shard.ts';

test.each([
  // FIPS 180's own examples of SHA-1, then digests as sha1sum prints them.
  ['abc', 0xa9993e36, 0x36],
  ['abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq', 0x84983e44, 0x44],
  ['order-1', 0xea37b42b, 0x2b],
  ['sample', 0x8151325d, 0x5d],
  ['summer-drop_2026', 0xfa92f5d7, 0xd7],
  ['A', 0x6dcd4ce2, 0xe2],
  ['0', 0xb6589fc6, 0xc6],
])('%s: the first four bytes are %i, the shard is %i', (saleId, firstFour, shard) => {
  expect(shardOf(saleId)).toBe(firstFour % 256);
  expect(shardOf(saleId)).toBe(shard);
});

test('every shard comes up, none much more often than others', () => {
  const counts = new Map<number, number>();
  const sales = 100 * SHARDS;
  for (let n = 0; n < sales; n += 1) {
    const shard = shardOf(`sale-${n}`);
    counts.set(shard, (counts.get(shard) ?? 0) + 1);
  }
  expect([...counts.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: SHARDS }, (_, n) => n));
  // Of a hundred on average, with a standard deviation of ten.
  expect(Math.min(...counts.values())).toBeGreaterThan(50);
  expect(Math.max(...counts.values())).toBeLessThan(150);
});

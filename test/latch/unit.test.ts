/** The latch by itself: what it believes, for how long, and whom it asks for. Time is moved by `sentAt`, not by waiting. */
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/outcomes.ts';
import { Latch, soldOutUpTo, type Holders, type Seen } from '../../src/gate/latch.ts';

const SALE = 'sale';
const LONG_MS = 600_000;
const SOLD_OUT: Outcome = { outcome: 'sold_out' };

/** What the gate said just now of a sale with nothing left. */
const soldOut = (but: Partial<Seen> = {}): Seen => ({
  ...{ sentAt: performance.now(), stock: 0, generation: 'g', version: 1, soldOutUpTo: 1 },
  ...but,
});
/** The same, said so long ago that it is over. */
const over = (but: Partial<Seen> = {}) => soldOut({ sentAt: performance.now() - LONG_MS, ...but });

/** A latch whose list of holders is answered by the test, one read after the other. */
function latchWith(periodMs = LONG_MS) {
  const reads: { resolve: (holders: Holders | undefined) => void; reject: (error: Error) => void }[] = [];
  const errors: unknown[] = [];
  const latch = new Latch({
    periodMs,
    readHolders: () => new Promise((resolve, reject) => reads.push({ resolve, reject })),
    onError: (error) => errors.push(error),
  });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    latch,
    reads,
    errors,
    settle,
    /** Answers the oldest read that waits. */
    answer: async (of: string, ...users: string[]) => {
      reads.shift()?.resolve({ of, users: new Set(users) });
      await settle();
    },
  };
}

/** A latch that has seen "nothing left" and knows the holders. */
async function latched(seen: Seen = soldOut(), ...holders: string[]) {
  const parts = latchWith();
  parts.latch.see(SALE, seen);
  await parts.answer(`g:${seen.version}`, ...holders);
  return parts;
}

/** Asks by hand: counts, and answers when told. */
function gate() {
  const asked: { resolve: (outcome: Outcome) => void; reject: (error: Error) => void }[] = [];
  return { asked, ask: () => new Promise<Outcome>((resolve, reject) => asked.push({ resolve, reject })) };
}

describe('what it refuses', () => {
  test('a buyer who holds nothing; not one who holds, not another sale, not a quantity that was not refused', async () => {
    const { latch } = await latched(soldOut({ soldOutUpTo: 2 }), 'holder');
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
    expect(latch.refuses(SALE, 'u', 2)).toBe(true);
    expect(latch.refuses(SALE, 'u', 3)).toBe(false);
    expect(latch.refuses(SALE, 'holder', 1)).toBe(false);
    expect(latch.refuses('other', 'u', 1)).toBe(false);
  });

  test.each<[string, Seen | undefined]>([
    ['its period is over', over()],
    ['units are left', soldOut({ stock: 1 })],
    ['the gate is not loaded', undefined],
    ['the sale is shut', soldOut({ soldOutUpTo: 0 })],
    ['nobody was refused yet', soldOut({ soldOutUpTo: undefined })],
  ])('nobody when %s', async (_, seen) => {
    const { latch, answer } = latchWith();
    latch.see(SALE, seen);
    await answer('g:1');
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
  });

  test('nobody without a period', async () => {
    const { latch, reads, settle } = latchWith(0);
    latch.see(SALE, soldOut());
    await settle();
    expect(reads).toHaveLength(0);
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
  });

  test('stops at once when the gate says otherwise, and when the connection is a new one', async () => {
    for (const but of [{ stock: 1, soldOutUpTo: undefined }, undefined, { soldOutUpTo: 0 }]) {
      const { latch } = await latched();
      latch.see(SALE, but && soldOut(but));
      expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    }
    const { latch } = await latched();
    latch.forget();
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
  });

  test('an answer that was overtaken changes nothing', async () => {
    const { latch } = await latched();
    latch.see(SALE, over({ stock: 5 }));
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
  });

  test('a reply that refused nobody does not make it last longer', async () => {
    const { latch } = await latched(over());
    latch.see(SALE, soldOut({ soldOutUpTo: undefined }));
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
  });
});

describe('whoever waits for a call when the latch closes', () => {
  test('is told what it knows; not one who holds, nor more than was refused', async () => {
    const { latch } = await latched(soldOut(), 'holder');
    expect(latch.known(SALE, 'u', 1)).toEqual(SOLD_OUT);
    expect(latch.known(SALE, 'holder', 1)).toBeUndefined();
    expect(latch.known(SALE, 'u', 2)).toBeUndefined();
    expect(latch.known('other', 'u', 1)).toBeUndefined();
  });

  test('is asked for when it is time to look, although somebody looks already: it may be that look itself', async () => {
    const { latch } = await latched(soldOut({ sentAt: performance.now() - 0.8 * LONG_MS }));
    const { ask } = gate();
    void latch.reserve(SALE, 'looker', 1, ask);
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
    expect(latch.known(SALE, 'looker', 1)).toBeUndefined();
  });
});

describe('the list of holders', () => {
  test('nothing is refused before it is there', async () => {
    const { latch, answer } = latchWith();
    latch.see(SALE, soldOut());
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    await answer('g:1');
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
  });

  test.each([
    ['version', { version: 2 }, 'g:2'],
    ['generation', { generation: 'h' }, 'h:1'],
  ])('is read again when the %s moved, and until then nobody is refused', async (_, moved, of) => {
    const { latch, answer, reads } = await latched();
    latch.see(SALE, soldOut(moved));
    expect(latch.refuses(SALE, 'winner', 1)).toBe(false);
    expect(reads).toHaveLength(1);
    await answer(of, 'winner');
    expect(latch.refuses(SALE, 'winner', 1)).toBe(false);
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
  });

  test('is not read again while it fits, nor twice at once', async () => {
    const { latch, reads } = await latched();
    latch.see(SALE, soldOut());
    expect(reads).toHaveLength(0);
    latch.see(SALE, soldOut({ version: 2 }));
    latch.see(SALE, soldOut({ version: 3 }));
    expect(reads).toHaveLength(1);
  });

  test('of too many holders is not asked for again before the gate has moved', async () => {
    const { latch, reads, settle } = latchWith();
    latch.see(SALE, soldOut());
    reads.shift()?.resolve(undefined);
    await settle();
    latch.see(SALE, soldOut());
    expect(reads).toHaveLength(0);
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    latch.see(SALE, soldOut({ version: 2 }));
    expect(reads).toHaveLength(1);
    reads.shift()?.resolve({ of: 'g:2', users: new Set(['holder']) });
    await settle();
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
    expect(latch.refuses(SALE, 'holder', 1)).toBe(false);
  });

  test('a list that was read too early, or too late, is of no use until the gate has said the same', async () => {
    const { latch, answer } = latchWith();
    latch.see(SALE, soldOut({ version: 2 }));
    await answer('g:1'); // from before the last winner
    expect(latch.refuses(SALE, 'winner', 1)).toBe(false);
    latch.see(SALE, soldOut({ version: 2 }));
    await answer('g:3', 'winner'); // somebody has won since
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    latch.see(SALE, soldOut({ version: 3 }));
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
    expect(latch.refuses(SALE, 'winner', 1)).toBe(false);
  });

  test('with more holders than the bound the gate is always asked', async () => {
    const { latch, reads, settle } = latchWith();
    for (let n = 0; n < 3; n += 1) {
      latch.see(SALE, soldOut());
      reads.shift()?.resolve(undefined);
      await settle();
      expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    }
  });

  test('one that cannot be read is told of, latches nothing, and is read again', async () => {
    const { latch, reads, errors, answer, settle } = latchWith();
    latch.see(SALE, soldOut());
    reads.shift()?.reject(new Error('away'));
    await settle();
    expect(errors).toEqual([new Error('away')]);
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    latch.see(SALE, soldOut());
    await answer('g:1');
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
  });
});

describe('the look', () => {
  /** Three quarters of the period and a little are over. */
  const soonOver = () => soldOut({ sentAt: performance.now() - 0.8 * LONG_MS });

  test('is taken before the period is over, by one, while the others are refused', async () => {
    const { latch } = await latched(soonOver());
    const { ask, asked } = gate();
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    const look = latch.reserve(SALE, 'u', 1, ask);
    expect(latch.refuses(SALE, 'v', 1)).toBe(true);
    latch.see(SALE, soldOut());
    asked[0]?.resolve(SOLD_OUT);
    expect(await look).toEqual(SOLD_OUT);
    expect(latch.refuses(SALE, 'v', 1)).toBe(true);
    expect(asked).toHaveLength(1);
  });

  test('that fails before the period is over is taken again by the next one', async () => {
    const { latch } = await latched(soonOver());
    const { ask, asked } = gate();
    const look = latch.reserve(SALE, 'u', 1, ask);
    asked[0]?.reject(new Error('away'));
    await expect(look).rejects.toThrow('away');
    expect(latch.refuses(SALE, 'v', 1)).toBe(false);
  });

  test('is one, however many wait for it; they are told what it saw', async () => {
    const { latch } = await latched(over());
    const { ask, asked } = gate();
    const waiting = Array.from({ length: 100 }, (_, n) => latch.reserve(SALE, `u${n}`, 1, ask));
    expect(asked).toHaveLength(1);
    latch.see(SALE, soldOut());
    asked[0]?.resolve(SOLD_OUT);
    expect(await Promise.all(waiting)).toEqual(Array(100).fill(SOLD_OUT));
    expect(asked).toHaveLength(1);
  });

  test('that finds a unit lets all who waited ask', async () => {
    const { latch } = await latched(over());
    const { ask, asked } = gate();
    const waiting = ['u', 'v', 'w'].map((user) => latch.reserve(SALE, user, 1, ask));
    latch.see(SALE, soldOut({ stock: 1, version: 2, soldOutUpTo: undefined }));
    asked[0]?.resolve({ outcome: 'ended' });
    await waiting[0];
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toHaveLength(3);
    asked.forEach(({ resolve }) => resolve({ outcome: 'ended' }));
    await Promise.all(waiting);
  });

  test('that fails is a failure for all who waited, and the next one looks again', async () => {
    const { latch } = await latched(over());
    const { ask, asked } = gate();
    const waiting = ['u', 'v', 'w'].map((user) => latch.reserve(SALE, user, 1, ask));
    asked[0]?.reject(new Error('away'));
    expect(await Promise.allSettled(waiting)).toEqual(Array(3).fill({ status: 'rejected', reason: new Error('away') }));
    expect(latch.refuses(SALE, 'u', 1)).toBe(false);
    const next = latch.reserve(SALE, 'u', 1, ask);
    expect(asked).toHaveLength(2);
    latch.see(SALE, soldOut());
    asked[1]?.resolve(SOLD_OUT);
    expect(await next).toEqual(SOLD_OUT);
    expect(latch.refuses(SALE, 'u', 1)).toBe(true);
  });

  test('is not waited for by holders, nor by who wants more than was refused', async () => {
    const { latch } = await latched(over(), 'holder');
    const { ask, asked } = gate();
    const look = latch.reserve(SALE, 'u', 1, ask);
    const others = [latch.reserve(SALE, 'holder', 1, ask), latch.reserve(SALE, 'v', 5, ask)];
    expect(asked).toHaveLength(3);
    asked[1]?.resolve({ outcome: 'not_started' });
    asked[2]?.resolve({ outcome: 'qty_over_limit' });
    expect(await Promise.all(others)).toEqual([{ outcome: 'not_started' }, { outcome: 'qty_over_limit' }]);
    latch.see(SALE, soldOut());
    asked[0]?.resolve(SOLD_OUT);
    await look;
  });

  test('that finds the sale shut lets nobody say "sold out"', async () => {
    const { latch } = await latched(over());
    const { ask, asked } = gate();
    const waiting = ['u', 'v'].map((user) => latch.reserve(SALE, user, 1, ask));
    latch.see(SALE, soldOut({ soldOutUpTo: 0 }));
    asked[0]?.resolve({ outcome: 'ended' });
    await waiting[0];
    await new Promise((resolve) => setImmediate(resolve));
    asked[1]?.resolve({ outcome: 'ended' });
    expect(await Promise.all(waiting)).toEqual(Array(2).fill({ outcome: 'ended' }));
  });
});

test.each<[number | undefined, [Outcome['outcome'], number][]]>([
  [undefined, []],
  [undefined, [['qty_over_limit', 9]]],
  [
    2,
    [
      ['sold_out', 1],
      ['sold_out', 2],
      ['qty_over_limit', 9],
    ],
  ],
  [0, [['ended', 1]]],
  [0, [['paused', 3]]],
  [0, [['not_started', 1]]],
])('a reply says %s of %j', (upTo, answers) => {
  const outcomes = answers.map(([outcome]) => ({ outcome }) as Outcome);
  expect(
    soldOutUpTo(
      answers.map(([, qty]) => ({ qty })),
      outcomes,
    ),
  ).toBe(upTo);
});

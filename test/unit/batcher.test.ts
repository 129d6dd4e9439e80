/** The batcher: order, bounds, deadlines, each item's own result. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Batcher, Overloaded, TooLate, type BatcherOptions } from '../../src/batcher.ts';

type Call = { items: number[]; timeoutMs: number; answer: (results?: (number | Error)[] | Error) => void };

/** A batcher whose calls are answered by the test, ten times the item each unless it says otherwise. */
function batcher(but: Partial<BatcherOptions<number, number>> = {}) {
  const calls: Call[] = [];
  const call = (items: number[], timeoutMs: number) =>
    new Promise<(number | Error)[]>((resolve, reject) => {
      calls.push({
        ...{ items, timeoutMs },
        answer: (results = items.map((item) => item * 10)) =>
          results instanceof Error ? reject(results) : resolve(results),
      });
    });
  const made = new Batcher({ call, size: 3, inFlight: 1, pending: 100, timeoutMs: 60_000, ...but });
  return { made, calls };
}

const later = () => performance.now() + 3_600_000;
/** Everything that was to be done in this turn of the event loop has been done. */
const turn = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);

describe('batches', () => {
  test('what one turn of the event loop brings goes together, in order, each with its own result', async () => {
    const { made, calls } = batcher();
    const results = Promise.all(range(0, 3).map((n) => made.add(n, later())));
    expect(calls).toHaveLength(0);
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([[0, 1, 2]]);
    calls[0]?.answer();
    expect(await results).toEqual([0, 10, 20]);
  });

  test('no more per call than its size, no more calls at once than allowed; what comes meanwhile is the next batch', async () => {
    const { made, calls } = batcher({ inFlight: 2 });
    const results = Promise.all(range(0, 10).map((n) => made.add(n, later())));
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([range(0, 3), range(3, 6)]);
    expect(made.size).toBe(4);
    calls[1]?.answer(); // the later one first
    await turn();
    expect(calls[2]?.items).toEqual(range(6, 9));
    const last = made.add(10, later());
    calls[0]?.answer();
    await turn();
    expect(calls[3]?.items).toEqual([9, 10]);
    for (const call of calls.slice(2)) call.answer();
    expect(await results).toEqual(range(0, 10).map((n) => n * 10));
    expect(await last).toBe(100);
  });

  test('with a free slot nothing waits for others', async () => {
    const { made, calls } = batcher({ inFlight: 2 });
    const first = made.add(1, later());
    await turn();
    const second = made.add(2, later());
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([[1], [2]]);
    for (const call of calls) call.answer();
    expect(await Promise.all([first, second])).toEqual([10, 20]);
  });

  test('what is known meanwhile needs no call; others go as before, and not all are told in one turn', async () => {
    const told = new Set<number>();
    const { made, calls } = batcher({ known: (n) => (told.has(n) ? -n : undefined) });
    const results = range(0, 12).map((n) => made.add(n, later()));
    await turn();
    for (const n of range(4, 11)) told.add(n);
    calls[0]?.answer();
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([[0, 1, 2], [3]]);
    const atEndOfTurn = new Promise<number>((resolve) => setImmediate(() => resolve(made.size)));
    calls[1]?.answer();
    expect(await atEndOfTurn).toBe(3); // 6, 7 and 8 have been told
    await turn();
    await turn();
    expect(calls[2]?.items).toEqual([11]);
    calls[2]?.answer();
    expect(await Promise.all(results)).toEqual([0, 10, 20, 30, -4, -5, -6, -7, -8, -9, -10, 110]);
    await made.drained();
  });

  test('many at once lose none', async () => {
    const answered: number[] = [];
    const made = new Batcher<number, number>({
      ...{ size: 7, inFlight: 3, pending: 1000, timeoutMs: 60_000 },
      call: async (items) => {
        await sleep(items[0] ? items[0] % 3 : 0);
        answered.push(...items);
        return items;
      },
    });
    expect(await Promise.all(range(0, 1000).map((n) => made.add(n, later())))).toEqual(range(0, 1000));
    expect(answered.sort((a, b) => a - b)).toEqual(range(0, 1000));
  });
});

describe('bounds', () => {
  test('one more than may wait is refused at once; the others are not disturbed', async () => {
    const { made, calls } = batcher({ pending: 4, size: 2 });
    const underWay = range(0, 2).map((n) => made.add(n, later()));
    await turn();
    const waiting = range(2, 6).map((n) => made.add(n, later()));
    await expect(made.add(6, later())).rejects.toThrow(Overloaded);
    expect(calls.map(({ items }) => items)).toEqual([[0, 1]]);
    calls[0]?.answer();
    await turn();
    const next = made.add(7, later()); // there is room again
    for (let n = 1; n < 4; n += 1) {
      calls[n]?.answer();
      await turn();
    }
    expect(await Promise.all([...underWay, ...waiting, next])).toEqual([0, 10, 20, 30, 40, 50, 70]);
  });
});

describe('deadlines', () => {
  test('an item whose deadline has passed is never sent; its neighbours are', async () => {
    const { made, calls } = batcher();
    const first = made.add(1, later());
    await turn();
    const late = made.add(2, performance.now() + 5);
    const neighbour = made.add(3, later());
    const refused = expect(late).rejects.toThrow(TooLate);
    await sleep(10);
    calls[0]?.answer();
    await refused;
    await turn();
    calls[1]?.answer();
    expect(await Promise.all([first, neighbour])).toEqual([10, 30]);
    expect(calls.flatMap(({ items }) => items)).toEqual([1, 3]);
  });

  test('a batch of nobody is no call', async () => {
    const { made, calls } = batcher();
    const results = await Promise.allSettled(range(0, 7).map((n) => made.add(n, performance.now() - 1)));
    expect(results.map(({ status }) => status)).toEqual(range(0, 7).map(() => 'rejected'));
    expect(calls).toHaveLength(0);
    await made.drained();
  });

  test('a call gets until the earliest deadline of its batch, and never longer than its own limit', async () => {
    const { made, calls } = batcher({ timeoutMs: 5000, inFlight: 2 });
    const soon = performance.now() + 1000;
    const first = [later(), soon, later()].map((deadline, n) => made.add(n, deadline));
    await turn();
    expect(calls[0]?.timeoutMs).toBeLessThanOrEqual(1000);
    expect(calls[0]?.timeoutMs).toBeGreaterThan(0);
    const second = made.add(3, later());
    await turn();
    expect(calls[1]?.timeoutMs).toBe(5000);
    for (const call of calls) call.answer();
    await Promise.all([...first, second]);
  });

  test('a store that stands still: each is answered, in the time that calls are given', async () => {
    // Each call lasts as long as it may and then fails, as one does whose store does not answer.
    const calls: number[] = [];
    const made = new Batcher<number, number>({
      ...{ size: 2, inFlight: 1, pending: 100, timeoutMs: 30 },
      call: async (items, timeoutMs) => {
        calls.push(...items);
        await sleep(timeoutMs);
        throw new Error('no answer');
      },
    });
    const deadline = performance.now() + 100;
    const results = await Promise.allSettled(range(0, 20).map((n) => made.add(n, deadline)));
    const reasons = results.map((result) => (result.status === 'rejected' ? (result.reason as Error) : undefined));
    expect(reasons.filter((reason) => reason === undefined)).toEqual([]);
    const unsent = reasons.filter((reason) => reason instanceof TooLate).length;
    expect(unsent + calls.length).toBe(20);
    expect(unsent).toBeGreaterThan(0);
    await made.drained();
  });
});

describe('failures', () => {
  test('an item’s own error is its own', async () => {
    const { made, calls } = batcher();
    const results = Promise.allSettled(range(0, 3).map((n) => made.add(n, later())));
    await turn();
    const reason = new Error('of the second');
    calls[0]?.answer([0, reason, 20]);
    expect(await results).toEqual([
      { status: 'fulfilled', value: 0 },
      { status: 'rejected', reason },
      { status: 'fulfilled', value: 20 },
    ]);
  });

  test('a call that fails fails all that were in it, and the next batch goes', async () => {
    const { made, calls } = batcher();
    const results = Promise.allSettled(range(0, 4).map((n) => made.add(n, later())));
    await turn();
    calls[0]?.answer(new Error('away'));
    await turn();
    calls[1]?.answer();
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled']);
  });

  test('a call that throws at once, and one that fails with no Error', async () => {
    const failing: [string, () => Promise<number[]>][] = [
      [
        'at once',
        () => {
          throw new Error('at once');
        },
      ],
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- some libraries do
      ['a word', () => Promise.reject('a word')],
    ];
    for (const [words, call] of failing) {
      const made = new Batcher<number, number>({ call, size: 3, inFlight: 1, pending: 9, timeoutMs: 1000 });
      await expect(made.add(1, later())).rejects.toThrow(words);
      await made.drained();
    }
  });

  test('too few results: whoever has none is told so, nobody waits for ever', async () => {
    const { made, calls } = batcher();
    const results = Promise.allSettled(range(0, 3).map((n) => made.add(n, later())));
    await turn();
    calls[0]?.answer([0]);
    expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });

  test('a result of undefined is a result', async () => {
    const made = new Batcher<number, undefined>({
      ...{ size: 3, inFlight: 1, pending: 9, timeoutMs: 1000 },
      call: (items) => Promise.resolve(items.map(() => undefined)),
    });
    expect(await Promise.all([made.add(1, later()), made.add(2, later())])).toEqual([undefined, undefined]);
  });
});

describe('drained', () => {
  test('at once when there is nothing', async () => {
    await batcher().made.drained();
  });

  test('only when nothing waits and no call is under way', async () => {
    const { made, calls } = batcher({ size: 1 });
    const results = Promise.all([made.add(1, later()), made.add(2, later())]);
    let drained = 0;
    const waiting = [made.drained().then(() => (drained += 1)), made.drained().then(() => (drained += 1))];
    await turn();
    calls[0]?.answer();
    await turn();
    expect(drained).toBe(0);
    calls[1]?.answer();
    await Promise.all(waiting);
    expect(await results).toEqual([10, 20]);
    expect(made.size).toBe(0);
  });
});

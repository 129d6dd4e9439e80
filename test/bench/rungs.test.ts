/** When a rung holds, what is said of it when it does not, and what the goal of the unrelated query is judged by. */
import { describe, expect, test } from 'vitest';
import type { Felt, Seen } from '../../bench/lib/bystander.ts';
import type { Round } from '../../bench/lib/rounds.ts';
import {
  baseline,
  broken,
  goal,
  holds,
  HOLDS_MS,
  machinesEnd,
  ratio,
  shop,
  SHOP_MS,
  summary,
  verdict,
  type Quiet,
  type Step,
} from '../../bench/lib/rungs.ts';

const seen = (p50: number, p99 = 10 * p50, failed = 0): Seen => ({ p50, p99, count: 100, failed });
const felt = (of: Partial<Felt> = {}): Felt => ({ query: seen(1), livez: seen(1), ...of });

function round({ p99 = 10, ...of }: Partial<Round> & { p99?: number } = {}): Round {
  return {
    ...{
      seconds: 1,
      statuses: { 202: 5, 409: 5 },
      refusals: {},
      conflicts: {},
      unanswered: 0,
      driverCpuMs: 1,
      rate: 10,
    },
    latencyMs: { p50: 1, p99, max: p99 },
    cpu: { server: 1, worker: 1, redis: 1, postgres: 1, driver: 1 },
    recount: undefined,
    ...of,
  };
}

const step = (of: Partial<Step> = {}): Step => ({
  ...{ key: 'update', name: 'conditional UPDATE', units: 100, rate: 500, round: round(), felt: felt() },
  ...of,
});

const quiets: Quiet[] = [1, 2, 9].map((p50) => ({
  ...{ name: 'conditional UPDATE', units: 100 },
  felt: felt({ query: seen(p50), catalogue: seen(2 * p50, 100) }),
}));
const quiet = baseline([...quiets, { name: 'flashgate', units: 100, felt: felt({ query: seen(2) }) }]);

test('the baseline is the middle of the quiet rounds; of the catalogue, of those that have one', () => {
  expect(quiet).toEqual({
    query: { p50: 2, p99: 20 },
    livez: { p50: 1, p99: 10 },
    catalogue: { p50: 4, p99: 100 },
  });
  expect(() => baseline([])).toThrow('no value was measured');
});

test('what the shop asks is the pool that the sale uses too, and without one its own connection', () => {
  const both = felt({ query: seen(3), catalogue: seen(8, 400) });
  expect(shop(both)).toEqual(seen(8, 400));
  expect([ratio(both, quiet), ratio(both, quiet, 'p99')]).toEqual([2, 4]);
  expect(shop(felt({ query: seen(3) }))).toEqual(seen(3));
  expect(ratio(felt({ query: seen(3) }), quiet)).toBe(1.5);
});

describe('a rung', () => {
  test('holds at the limits', () => {
    const last = step({ round: round({ p99: HOLDS_MS }), felt: felt({ catalogue: seen(4 + SHOP_MS, 9999) }) });
    expect([holds(last, quiet), broken(last, quiet), verdict(last, quiet)]).toEqual([true, [], 'holds']);
  });

  test.each<[string, Partial<Step>, RegExp]>([
    ['buyers wait', { round: round({ p99: HOLDS_MS + 1 }) }, /^\*\*buyers’ p99 251 ms\*\*$/],
    ['no buyer was answered', { round: round({ p99: Number.NaN }) }, /buyers’ p99 – ms/],
    ['buyers got no answer', { round: round({ unanswered: 3 }) }, /^\*\*3 errors\*\*$/],
    [
      'buyers got errors, the most frequent named',
      { round: round({ statuses: { 503: 1200 }, refusals: { paused: 1, overloaded: 1199 } }) },
      /^\*\*1,200 errors \(overloaded\)\*\*$/,
    ],
    ['the shop waits for the pool', { felt: felt({ catalogue: seen(4 + SHOP_MS + 1) }) }, /^\*\*the shop waits 7 ms/],
    ['the shop waits for the database', { felt: felt({ query: seen(2 + SHOP_MS + 1) }) }, /^\*\*the shop waits 5 ms/],
    ['one query of the shop failed', { felt: felt({ query: seen(1, 10, 1) }) }, /^\*\*the shop got 1 errors\*\*$/],
    ['one page of the shop failed', { felt: felt({ catalogue: seen(1, 10, 1) }) }, /the shop got 1 errors/],
    ['one /livez failed', { felt: felt({ livez: seen(1, 10, 1) }) }, /the shop got 1 errors/],
  ])('does not hold when %s', (_, of, said) => {
    expect(holds(step(of), quiet)).toBe(false);
    expect(verdict(step(of), quiet)).toMatch(said);
  });

  test('all that broke is said, not only the first', () => {
    const bad = step({ round: round({ p99: 900 }), felt: felt({ catalogue: seen(80, 90, 2) }) });
    expect(broken(bad, quiet)).toEqual(['the shop got 2 errors', 'buyers’ p99 900 ms', 'the shop waits 80 ms']);
  });
});

test('the machine ends where the bare route no longer answers in time, whatever the shop feels', () => {
  const bare = (rate: number, p99: number) => step({ key: 'bare', rate, round: round({ p99 }) });
  expect(machinesEnd([])).toBe(Infinity);
  expect(machinesEnd([bare(500, 10), { ...bare(2000, 10), felt: felt({ query: seen(99) }) }])).toBe(Infinity);
  expect(machinesEnd([bare(500, 10), bare(2000, 900), bare(8000, 900)])).toBe(2000);
  expect(machinesEnd([step({ key: 'bare', rate: 500, round: round({ unanswered: 1 }) })])).toBe(500);
});

test('the summary: the highest rate below the first fall, and why it fell', () => {
  const at = (rate: number, p99: number, of: Partial<Step> = {}) => step({ rate, round: round({ p99 }), ...of });
  const rows = summary(
    [
      ...[at(500, 10), at(2000, 900), at(8000, 20)], // what it does beyond its fall is not what it holds
      ...[500, 2000].map((rate) => at(rate, 10, { units: 5000 })),
      at(500, 900, { name: 'FOR UPDATE' }),
      at(8000, 900, { key: 'bare', name: 'bare' }),
      ...[500, 8000].map((rate) => at(rate, rate, { name: 'flashgate', round: round({ p99: rate / 10 }) })),
    ],
    quiet,
    8000,
  );
  expect(rows.slice(1, -1)).toEqual([
    '|  | 100 units: holds buyers/s | what breaks first | 5,000 units: holds buyers/s | what breaks first |',
    '| --- | ---: | ---: | ---: | ---: |',
    '| conditional UPDATE | 500 | at 2,000: buyers’ p99 900 ms | 2,000 | nothing up to there |',
    '| FOR UPDATE | none of those tried | at 500: buyers’ p99 900 ms | – | – |',
    '| bare | none of those tried | at 8,000: buyers’ p99 900 ms | – | – |',
    '| flashgate | 500 | at 8,000: buyers’ p99 800 ms (the bare route falls there too) | – | – |',
  ]);
});

describe('the goal', () => {
  const own = (p50: number, of: Partial<Step> = {}) =>
    step({ key: 'flashgate', name: 'flashgate', felt: felt({ query: seen(p50) }), ...of });

  test('is judged by flashgate’s worst step, and shows the worst of the others beside it', () => {
    const slow = step({ felt: felt({ catalogue: seen(400, 800, 3) }) });
    const better = step({ key: 'memory', name: 'UPDATE + memory' });
    const { met, measured } = goal([own(1), own(3, { rate: 2000 }), better, slow], quiet);
    expect(met).toBe(true);
    expect(measured).toBe('1.5 × (p99 1 ×); conditional UPDATE: 100 × (p99 8 ×, 3 failed)');
    expect(goal([own(1), own(3.1, { rate: 2000 }), own(1, { rate: 8000 })], quiet).met).toBe(false);
  });

  test.each(['query', 'livez'] as const)('is missed when one %s failed', (what) => {
    expect(goal([own(1), own(1, { felt: felt({ [what]: seen(1, 1, 1) }) })], quiet).met).toBe(false);
  });

  test('is missed when flashgate was not measured', () => {
    expect(goal([step()], quiet).met).toBe(false);
  });
});

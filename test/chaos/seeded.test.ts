/** What a seed decides: the script of faults and every visit, the same each time, and nothing but the seed decides it. */
import { describe, expect, test } from 'vitest';
import { QUICK } from '../../chaos/command.ts';
import { FATES, drawVisit, SALES, type Visit } from '../../chaos/plan.ts';
import { PREFERENCES, type PreferenceName } from '../../chaos/preferences.ts';
import { Random } from '../../chaos/random.ts';
import { drawScript, KINDS, LOSES_GATE, MEMBERS, type Kind, type Script } from '../../chaos/script.ts';

const MINUTE_MS = 60_000;
const script = (seed: number, but: Partial<Parameters<typeof drawScript>[1]> = {}) =>
  drawScript(new Random(seed), { forMs: 2 * MINUTE_MS, ...but });

function visits(seed: number, count: number, but: object = {}): Visit[] {
  const random = new Random(seed).fork('load');
  const all: Visit[] = [];
  for (let n = 1; n <= count; n += 1) {
    all.push(drawVisit(random, n, all.at(-1)?.atMs ?? 0, { ratePerSecond: 40, ...but }));
  }
  return all;
}

describe('chance', () => {
  test('the same seed and the same questions give the same answers; another seed, others', () => {
    const draw = (seed: number) => {
      const random = new Random(seed).fork('something');
      return Array.from({ length: 5 }, () => random.whole(1, 1000));
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(8)).not.toEqual(draw(7));
    expect(new Set(draw(7)).size).toBeGreaterThan(1);
  });

  test('a fork does not depend on what else was asked', () => {
    const quiet = new Random(7);
    const asked = new Random(7);
    for (let n = 0; n < 100; n += 1) asked.chance(0.5);
    expect(asked.fork('one').between(0, 1)).toBe(quiet.fork('one').between(0, 1));
    expect(quiet.fork('one').between(0, 1)).not.toBe(quiet.fork('two').between(0, 1));
  });

  test('bounds and weights are kept', () => {
    const random = new Random(1);
    const wholes = Array.from({ length: 1000 }, () => random.whole(3, 5));
    expect(new Set(wholes)).toEqual(new Set([3, 4, 5]));
    const words = Array.from({ length: 1000 }, () => random.weighted({ often: 9, seldom: 1, never: 0 }));
    expect(words).not.toContain('never');
    const often = words.filter((word) => word === 'often').length;
    expect(often).toBeGreaterThan(800);
    expect(often).toBeLessThan(980);
    expect(random.shuffled([1, 2, 3, 4]).sort()).toEqual([1, 2, 3, 4]);
    const gaps = Array.from({ length: 2000 }, () => random.gap(100));
    expect(gaps.every((gap) => gap >= 0)).toBe(true);
    expect(gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length).toBeCloseTo(100, -2);
  });
});

describe('the script', () => {
  test('the same seed, the same script; another seed, another one', () => {
    for (const seed of [1, 7, 123_456]) expect(script(seed)).toEqual(script(seed));
    expect(script(1)).not.toEqual(script(2));
  });

  test('two minutes have every kind, in order, within the time, on what there is', () => {
    for (const seed of [1, 2, 3]) {
      const { faults } = script(seed, { losesGate: true });
      expect(new Set(faults.map(({ kind }) => kind)).size, `seed ${seed}`).toBeGreaterThanOrEqual(18);
      expect(faults.map(({ atMs }) => atMs)).toEqual(faults.map(({ atMs }) => atMs).sort((a, b) => a - b));
      for (const { atMs, forMs, target } of faults) {
        expect(atMs + forMs).toBeLessThanOrEqual(2 * MINUTE_MS);
        const [thing = '', way] = target.split(' ');
        const known = [...MEMBERS, 'redis', 'postgres', 'queue', 'provider'] as string[];
        expect(known).toContain(thing);
        if (way !== undefined) expect(['redis', 'postgres', 'queue']).toContain(way);
      }
    }
  });

  test('over ten seeds every kind strikes', () => {
    const kinds = Array.from({ length: 10 }, (_, n) => script(n, { losesGate: true })).flatMap(({ faults }) =>
      faults.map(({ kind }) => kind),
    );
    expect([...new Set(kinds)].sort()).toEqual((Object.keys(KINDS) as Kind[]).sort());
  });

  test('the quick run has every kind but those that make the gate forget', () => {
    const { faults, losesGate } = script(QUICK.seed, { forMs: QUICK.minutes * MINUTE_MS });
    expect(losesGate).toBe(false);
    const wanted = (Object.keys(KINDS) as Kind[]).filter((kind) => !LOSES_GATE.includes(kind));
    expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(wanted));
  });

  test('what is broken is not broken again before it is back', () => {
    const { faults } = script(4, { losesGate: true });
    for (const [n, fault] of faults.entries()) {
      const before = faults.slice(0, n).filter(({ target }) => target === fault.target);
      for (const { atMs, forMs } of before) expect(atMs + forMs).toBeLessThan(fault.atMs);
    }
  });

  test('a gate that keeps its word is never made to forget; which it is, is drawn', () => {
    const forgets = ({ faults }: Script) => faults.some(({ kind }) => LOSES_GATE.includes(kind));
    const all = Array.from({ length: 40 }, (_, seed) => script(seed));
    for (const one of all) expect(forgets(one)).toBe(one.losesGate);
    expect(new Set(all.map(({ losesGate }) => losesGate))).toEqual(new Set([true, false]));
    expect(forgets(script(1, { losesGate: false }))).toBe(false);
  });

  test.each(Object.entries(PREFERENCES))('the preference %s is seeded as well', (_, { refrain, losesGate }) => {
    const draw = () => script(5, { losesGate, refrain, forMs: 0.7 * MINUTE_MS });
    expect(draw()).toEqual(draw());
    expect(draw().faults.length).toBeGreaterThan(0);
    const wanted = refrain?.map(({ kind }) => kind);
    if (wanted) expect(new Set(draw().faults.map(({ kind }) => kind))).toEqual(new Set(wanted));
  });
});

describe('the load', () => {
  test('the same seed, the same visits; one visit does not change the next', () => {
    expect(visits(7, 200)).toEqual(visits(7, 200));
    expect(visits(7, 200)).not.toEqual(visits(8, 200));
    const random = new Random(7).fork('load');
    expect(drawVisit(random, 150, 0, { ratePerSecond: 40 }).userId).toBe(visits(7, 150).at(-1)?.userId);
  });

  test('as many a second as was asked for; every sale, every fate, every way to press', () => {
    const all = visits(3, 4000);
    expect((all.at(-1)?.atMs ?? 0) / 1000).toBeCloseTo(4000 / 40, -1);
    expect(new Set(all.map(({ sale }) => sale.saleId))).toEqual(new Set(SALES.map(({ saleId }) => saleId)));
    expect(new Set(all.map(({ fate }) => fate))).toEqual(new Set(Object.keys(FATES)));
    expect(new Set(all.map(({ pressing }) => pressing))).toEqual(new Set(['once', 'twice', 'cut']));
    expect(all.some(({ qty, sale }) => qty > sale.maxPerReservation)).toBe(true);
    expect(new Set(all.map(({ userId }) => userId)).size, 'buyers come back').toBeLessThan(all.length);
  });

  test('a preference for a fate is seen', () => {
    const share = (name: PreferenceName | undefined) =>
      visits(3, 2000, { fates: name && PREFERENCES[name].fates }).filter(({ fate }) => fate === 'cancel').length;
    expect(share('slow-keepers')).toBeGreaterThan(2 * share(undefined));
  });
});

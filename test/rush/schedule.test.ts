/** The plan of a rush: seeded, repeatable, and shaped as asked. */
import { describe, expect, it } from 'vitest';
import { arrivals, planRush, type Plan, type PlanOptions } from '../../src/rush/schedule.ts';

const options: PlanOptions = {
  buyers: 5000,
  units: 100,
  quantity: 3,
  arrival: 'burst',
  overSeconds: 2,
  pressAgain: 0.2,
  cut: 0.1,
  payers: 0.7,
  latePayers: 0.1,
  comeBack: 0.5,
  holdSeconds: 8,
  seed: 42,
};

/** Each buyer's first press, in milliseconds. */
function firstPresses({ buyers, presses }: Plan): number[] {
  const first = new Map<number, number>();
  for (const { buyer, at } of presses) if (!first.has(buyer)) first.set(buyer, at);
  expect(first.size).toBe(buyers.length);
  return [...first.values()];
}

describe('planRush', () => {
  it('draws the same rush for the same seed, and another for another', () => {
    expect(planRush(options)).toEqual(planRush(options));
    expect(planRush(options).presses).not.toEqual(planRush({ ...options, seed: 43 }).presses);
  });

  it('has presses in the order in which they are due', () => {
    const { presses } = planRush(options);
    expect(presses).toEqual(presses.toSorted((a, b) => a.at - b.at));
  });

  it.each(arrivals)('lets every buyer arrive within the time given (%s)', (arrival) => {
    const first = firstPresses(planRush({ ...options, arrival }));
    expect(Math.min(...first)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...first)).toBeLessThanOrEqual(2000);
  });

  it('arrives early in a burst, evenly when uniform, late on a ramp', () => {
    const early = (arrival: PlanOptions['arrival']) =>
      firstPresses(planRush({ ...options, arrival })).filter((at) => at < 1000).length / options.buyers;
    // Parts that the curves have in their first half: (1 - e^-2) / (1 - e^-4), 1/2, 1/4.
    expect(early('burst')).toBeCloseTo(0.881, 1);
    expect(early('uniform')).toBeCloseTo(0.5, 1);
    expect(early('ramp')).toBeCloseTo(0.25, 1);
  });

  it('keeps the shares', () => {
    const { buyers, presses, roles } = planRush(options);
    expect(presses.filter(({ cut }) => cut).length / buyers.length).toBeCloseTo(0.1, 1);
    expect((presses.length - buyers.length) / buyers.length).toBeCloseTo(0.3, 1); // half of the impatient press thrice
    const count = (does: string) => roles.filter((role) => role.does === does).length;
    expect([count('pay'), count('pay_late'), count('abandon')]).toEqual([70, 10, 20]);
    expect(roles.filter(({ comesBack }) => comesBack).every(({ does }) => does === 'abandon')).toBe(true);
    expect(new Set(buyers.map(({ qty }) => qty))).toEqual(new Set([1, 2, 3]));
  });
});

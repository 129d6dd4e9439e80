/**
 * Who presses when, and what they will do if they win: drawn before the rush from one seeded generator, so that the
 * same options give the same rush, whatever the server does. Pure: no I/O.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

export const arrivals = ['burst', 'uniform', 'ramp'] as const;
export type Arrival = (typeof arrivals)[number];

/** Shares are parts of 1. */
export type PlanOptions = {
  buyers: number;
  units: number;
  /** Each buyer asks for 1 to this many units. */
  quantity: number;
  arrival: Arrival;
  overSeconds: number;
  /** Share of buyers who press again before they know. */
  pressAgain: number;
  /** Share of buyers whose first reply is cut off. */
  cut: number;
  payers: number;
  latePayers: number;
  /** Share of those who let a hold lapse and then press again. */
  comeBack: number;
  holdSeconds: number;
  seed: number;
};

/** A request that is due `at` milliseconds after the start. `cut`: its reply is cut off, once it is written. */
export type Press = { buyer: number; at: number; cut: boolean };

export type BuyerPlan = {
  userId: string;
  qty: number;
  /** After a reply that was cut off: the pause until the buyer presses again, in milliseconds. */
  againAfterCutMs: number;
};

/** What a winner does with the hold. `thinkMs`: pause before paying. `comesBack`: presses again after it lapsed. */
export type Role = { does: 'pay' | 'pay_late' | 'abandon'; thinkMs: number; comesBack: boolean };

/** `presses` by due time. `roles`: the k-th winner takes the k-th (and starts over after the last). */
export type Plan = { buyers: BuyerPlan[]; presses: Press[]; roles: Role[] };

/** Pauses of impatient buyers, in milliseconds. */
const PAUSE_MS = { min: 150, max: 1500 };
/** How front-loaded `burst` is: the rate falls by e^4 from the first moment to the last. */
const BURST = 4;

/** Moment of an arrival as a part of the whole time (0 to 1), from a uniform draw: the curve's inverse distribution. */
const inverse: Record<Arrival, (u: number) => number> = {
  burst: (u) => -Math.log(1 - u * (1 - Math.exp(-BURST))) / BURST,
  uniform: (u) => u,
  ramp: Math.sqrt,
};

export function planRush(options: PlanOptions): Plan {
  const rng = xoroshiro128plus(options.seed);
  const chance = (share: number) => uniformFloat64(rng) < share;
  const pause = () => uniformInt(rng, PAUSE_MS.min, PAUSE_MS.max);
  const arrive = inverse[options.arrival];

  const buyers: BuyerPlan[] = [];
  const presses: Press[] = [];
  for (let buyer = 0; buyer < options.buyers; buyer += 1) {
    const at = arrive(uniformFloat64(rng)) * options.overSeconds * 1000;
    const qty = uniformInt(rng, 1, options.quantity);
    const cut = chance(options.cut);
    buyers.push({ userId: `rush-${options.seed}-${buyer}`, qty, againAfterCutMs: pause() });
    presses.push({ buyer, at, cut });
    if (!chance(options.pressAgain)) continue;
    const second = at + pause();
    presses.push({ buyer, at: second, cut: false });
    if (chance(0.5)) presses.push({ buyer, at: second + pause(), cut: false });
  }
  presses.sort((a, b) => a.at - b.at);
  return { buyers, presses, roles: dealRoles(options, chance, (min, max) => uniformInt(rng, min, max)) };
}

/** As many roles as there can be winners at once, in exact shares, shuffled. */
function dealRoles(
  options: PlanOptions,
  chance: (share: number) => boolean,
  draw: (min: number, max: number) => number,
): Role[] {
  const count = Math.max(1, options.units);
  const payers = Math.round(count * options.payers);
  const late = Math.min(count - payers, Math.round(count * options.latePayers));
  const longestThink = Math.round(Math.min(2000, options.holdSeconds * 250));
  const roles = Array.from({ length: count }, (_, n): Role => {
    const does = n < payers ? 'pay' : n < payers + late ? 'pay_late' : 'abandon';
    return { does, thinkMs: draw(0, longestThink), comesBack: does === 'abandon' && chance(options.comeBack) };
  });
  for (let n = count - 1; n > 0; n -= 1) {
    const other = draw(0, n);
    [roles[n], roles[other]] = [roles[other] as Role, roles[n] as Role];
  }
  return roles;
}

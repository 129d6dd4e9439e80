/** Chance from a seed: the same seed and the same questions give the same answers, on every machine. Pure: no I/O. */
import { createHash } from 'node:crypto';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

export class Random {
  readonly seed: number;
  #generator: ReturnType<typeof xoroshiro128plus>;

  constructor(seed: number) {
    this.seed = seed;
    this.#generator = xoroshiro128plus(seed);
  }

  /**
   * A generator of its own for one thing, whatever else is drawn: what buyer 17 does must not depend on how many
   * questions buyer 16 came to ask.
   */
  fork(label: string): Random {
    return new Random(createHash('sha1').update(`${this.seed} ${label}`).digest().readInt32BE(0));
  }

  /** From `min` up to, and not including, `max`. */
  between(min: number, max: number): number {
    return min + uniformFloat64(this.#generator) * (max - min);
  }

  /** A whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number {
    return Math.floor(this.between(min, max + 1));
  }

  chance(share: number): boolean {
    return this.between(0, 1) < share;
  }

  /** Time until the next of events that come independently of each other, every `mean` on average. */
  gap(mean: number): number {
    return -Math.log(1 - this.between(0, 1)) * mean;
  }

  pick<T>(items: readonly T[]): T {
    const picked = items[this.whole(0, items.length - 1)];
    if (picked === undefined) throw new Error('there is nothing to pick from');
    return picked;
  }

  /** One of the names, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.between(0, 1) * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    throw new Error('every weight is zero');
  }

  shuffled<T>(items: readonly T[]): T[] {
    const all = [...items];
    for (let n = all.length - 1; n > 0; n -= 1) {
      const other = this.whole(0, n);
      [all[n], all[other]] = [all[other] as T, all[n] as T];
    }
    return all;
  }
}

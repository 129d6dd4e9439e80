/**
 * A figure that is read from a store when somebody asks for metrics: once for all who ask, kept for a while, and never
 * waited for longer than a scrape can wait. A store that is away is a figure that is missing, not a scrape that fails.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export type ReadingOptions = {
  /** How long it is kept at least. */
  keepMs: number;
  /** How long somebody who asks waits at most. */
  patienceMs: number;
  /** Milliseconds, for tests that let time pass. */
  now?: () => number;
};

/** It is kept for so many times as long as reading it took: a store spends at most a fiftieth of one connection on it. */
const KEEP_TIMES = 50;

export class Reading<T> {
  #read: () => Promise<T>;
  #options: ReadingOptions;
  #now: () => number;
  #value: T | undefined;
  #goodUntil = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(read: () => Promise<T>, options: ReadingOptions) {
    this.#read = read;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The figure, or undefined when it is not known: the last reading failed, or the first one is not done yet. */
  async latest(): Promise<T | undefined> {
    if (this.#now() < this.#goodUntil) return this.#value;
    this.#reading ??= this.#readOnce();
    await Promise.race([this.#reading, sleep(this.#options.patienceMs, undefined, { ref: false })]);
    return this.#value;
  }

  async #readOnce(): Promise<void> {
    const beganAt = this.#now();
    // Who failed is told by `flashgate_store_up` and counted with the store's other failures.
    this.#value = await this.#read().catch(() => undefined);
    const now = this.#now();
    this.#goodUntil = now + Math.max(this.#options.keepMs, KEEP_TIMES * (now - beganAt));
    this.#reading = undefined;
  }
}

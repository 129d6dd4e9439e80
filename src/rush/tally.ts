/** Counts and latencies of the rush, by kind of answer. */
import { performance } from 'node:perf_hooks';
import { build, type Histogram } from 'hdr-histogram-js';
import type { Answer } from './answers.ts';

/** Milliseconds. */
export type Spread = { p50: number; p99: number; max: number };
export type KindLine = Spread & { kind: string; is: Answer['is']; count: number };

/** What was heard in one step of time: answers by kind, and their latencies, if there were any. */
export type Bucket = { counts: Record<string, number>; times: Spread | null };
/** The rush over time, in steps of `bucketMs` from its start; the sum of all counts is what was answered. */
export type Course = { bucketMs: number; buckets: Bucket[] };

/** Beyond either, the driver's own slowness, and not only the server's, shapes the latencies. */
const DRIVER_LAG_LIMIT_MS = 100;
const DRIVER_BUSY_LIMIT = 0.95;
const BUSY_WINDOW_MS = 500;
const LONGEST_US = 3_600_000_000;

/** Steps for a rush that arrives within so many seconds: about forty of them, and what comes after. In milliseconds. */
export function stepFor(overSeconds: number): number {
  const rough = (overSeconds * 1000) / 40;
  return [50, 100, 250, 500, 1000, 5000, 15_000, 60_000].find((step) => step >= rough) ?? 120_000;
}

export class Tally {
  answered = 0;
  unexpected: string[] = [];
  /** Part of its time (0 to 1) that the driver's thread was at work, in the half second in which it was most. */
  driverBusy = 0;
  #kinds = new Map<string, { is: Answer['is']; times: Histogram }>();
  #bySecond = new Map<number, number>();
  #bucketMs: number;
  #startedAt = performance.now();
  /** Of the past, and the step that is now, whose histogram is used again and again: a rush may last an hour. */
  #past: Bucket[] = [];
  #now: Record<string, number> = {};
  #nowTimes = newHistogram();
  #driverLag = newHistogram();
  #sendLag = newHistogram();

  /** @param bucketMs the steps of {@link course} */
  constructor(bucketMs: number) {
    this.#bucketMs = bucketMs;
  }

  /** Time begins here: call it with the first press. */
  start(): void {
    this.#startedAt = performance.now();
  }

  /** How it went until now. */
  course(): Course {
    const now: Bucket = { counts: { ...this.#now }, times: this.#timesNow() };
    return { bucketMs: this.#bucketMs, buckets: [...this.#past, now] };
  }

  #timesNow(): Spread | null {
    return this.#nowTimes.totalCount === 0 ? null : spread(this.#nowTimes);
  }

  /** Answers come in the order of time: what is before this step is past. */
  #bucket(kind: string, latencyMs: number): void {
    const step = Math.max(0, Math.floor((performance.now() - this.#startedAt) / this.#bucketMs));
    while (this.#past.length < step) {
      this.#past.push({ counts: this.#now, times: this.#timesNow() });
      this.#now = {};
      if (this.#nowTimes.totalCount > 0) this.#nowTimes.reset();
    }
    this.#now[kind] = (this.#now[kind] ?? 0) + 1;
    record(this.#nowTimes, latencyMs);
  }

  /** A request was handed to the connections this late, in milliseconds after it was due: the driver's own lateness. */
  handed(lagMs: number): void {
    record(this.#driverLag, lagMs);
  }

  /**
   * @param latencyMs from when the request was due, not from when it was sent: a stalled server is not flattered
   * @param sendLagMs from when it was due until it was written (waiting for a free connection included)
   */
  add(answer: Answer, latencyMs: number, sendLagMs: number | undefined): void {
    this.answered += 1;
    const second = Math.floor(performance.now() / 1000);
    this.#bySecond.set(second, (this.#bySecond.get(second) ?? 0) + 1);
    if (answer.is === 'unexpected') this.unexpected.push(answer.words);
    const { kind, is } = answer;
    let line = this.#kinds.get(kind);
    if (!line) this.#kinds.set(kind, (line = { is, times: newHistogram() }));
    record(line.times, latencyMs);
    this.#bucket(kind, latencyMs);
    if (sendLagMs !== undefined) record(this.#sendLag, sendLagMs);
  }

  /** Watches how busy the driver's own thread is, until the returned function is called. */
  watchDriver(): () => void {
    let last = performance.eventLoopUtilization();
    const look = () => {
      const now = performance.eventLoopUtilization();
      this.driverBusy = Math.max(this.driverBusy, performance.eventLoopUtilization(now, last).utilization);
      last = now;
    };
    const timer = setInterval(look, BUSY_WINDOW_MS);
    return () => {
      clearInterval(timer);
      look();
    };
  }

  driverFellBehind(): boolean {
    return this.driverBusy > DRIVER_BUSY_LIMIT || this.lag().driver.p99 > DRIVER_LAG_LIMIT_MS;
  }

  count(kind: string): number {
    return this.#kinds.get(kind)?.times.totalCount ?? 0;
  }

  /** Answers in the second (of the driver's clock) that had most. */
  busiestSecond(): number {
    return Math.max(0, ...this.#bySecond.values());
  }

  /** Most frequent first. */
  lines(): KindLine[] {
    const lines = [...this.#kinds].map(([kind, { is, times }]) => ({
      kind,
      is,
      count: times.totalCount,
      ...spread(times),
    }));
    return lines.sort((a, b) => b.count - a.count);
  }

  lag(): { driver: Spread; send: Spread } {
    return { driver: spread(this.#driverLag), send: spread(this.#sendLag) };
  }
}

function newHistogram(): Histogram {
  return build({ lowestDiscernibleValue: 1, highestTrackableValue: LONGEST_US, numberOfSignificantValueDigits: 3 });
}

function record(histogram: Histogram, ms: number): void {
  histogram.recordValue(Math.min(Math.max(0, Math.round(ms * 1000)), LONGEST_US));
}

function spread(histogram: Histogram): Spread {
  // The histogram answers with the upper edge of a bucket, which may lie above the largest value itself.
  const ms = (us: number) => Math.round(Math.min(us, histogram.maxValue) / 100) / 10;
  return {
    p50: ms(histogram.getValueAtPercentile(50)),
    p99: ms(histogram.getValueAtPercentile(99)),
    max: ms(histogram.maxValue),
  };
}

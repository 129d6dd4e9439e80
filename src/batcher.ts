/**
 * Collects items that arrive together and hands them on in one call: to the gate, to the queue, to the ledger.
 *
 * Nothing waits while there is a free slot; what arrives while all slots are busy forms the next batch. Bounded: when
 * `pending` items wait already, the next one is refused at once. An item whose deadline has passed is never sent.
 *
 * Deadlines need no timer per item: every call ends by the earliest deadline of its batch, and items come in the order
 * of their deadlines, so whoever waits is looked at again before its own.
 */

/** Thrown at `add` when too many items wait: back-pressure instead of a growing queue. */
export class Overloaded extends Error {}
/** Thrown when an item's deadline passed before its call was made: the call was not and will not be made. */
export class TooLate extends Error {}

export type BatcherOptions<T, R> = {
  /** What is known of a waiting item meanwhile, so that it needs no call; undefined if nothing is. */
  known?: (item: T) => R | undefined;
  /** Makes the call. Answers one result per item, in the items' order; a result that is an Error fails that item alone. */
  call: (items: T[], timeoutMs: number) => Promise<(R | Error)[]>;
  /** Items per call at most. */
  size: number;
  /** Calls under way at most. */
  inFlight: number;
  /** Items waiting at most. */
  pending: number;
  /** Longest time for one call, in milliseconds. */
  timeoutMs: number;
};

type Waiting<T, R> = { item: T; deadline: number; resolve: (result: R) => void; reject: (error: Error) => void };

export class Batcher<T, R> {
  #options: BatcherOptions<T, R>;
  #waiting: Waiting<T, R>[] = [];
  #calls = 0;
  #scheduled = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<T, R>) {
    this.#options = options;
  }

  /** @param deadline by `performance.now()`; the promise is settled by then */
  add(item: T, deadline: number): Promise<R> {
    if (this.#waiting.length >= this.#options.pending) {
      return Promise.reject(new Overloaded(`${this.#options.pending} wait already`));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, deadline, resolve, reject });
      this.#schedule();
    });
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether nothing waits and no call is under way. */
  get idle(): boolean {
    return this.#waiting.length === 0 && this.#calls === 0;
  }

  /** Resolves when it is idle. */
  async drained(): Promise<void> {
    if (this.idle) return;
    await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  /** Once per turn of the event loop: what the same turn brings goes together. */
  #schedule(): void {
    if (this.#scheduled || this.#calls >= this.#options.inFlight) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#calls < this.#options.inFlight) {
      const now = performance.now();
      const batch: Waiting<T, R>[] = [];
      for (const waiting of this.#waiting.splice(0, this.#options.size)) {
        const known = this.#options.known?.(waiting.item);
        if (known !== undefined) waiting.resolve(known);
        else if (waiting.deadline > now) batch.push(waiting);
        else waiting.reject(new TooLate('the deadline passed before its turn came'));
      }
      if (batch.length > 0) void this.#send(batch, now);
      else if (this.#waiting.length > 0) {
        this.#schedule(); // thousands who are told at once would hold up all else
        return;
      }
    }
    if (this.idle) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  async #send(batch: Waiting<T, R>[], now: number): Promise<void> {
    this.#calls += 1;
    try {
      const earliest = batch.reduce((least, { deadline }) => Math.min(least, deadline), Infinity);
      const results = await this.#options.call(
        batch.map(({ item }) => item),
        Math.min(this.#options.timeoutMs, earliest - now),
      );
      batch.forEach((waiting, n) => {
        const result = results[n];
        if (result instanceof Error) waiting.reject(result);
        else if (n < results.length) waiting.resolve(result as R);
        else waiting.reject(new Error(`a batch of ${batch.length} got ${results.length} results`));
      });
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      for (const waiting of batch) waiting.reject(failure);
    } finally {
      this.#calls -= 1;
      this.#flush();
    }
  }
}

/**
 * The latch: how a "no" costs nothing.
 *
 * For a period, counted from when the gate was asked, this process remembers that nothing is left of a sale and who
 * holds, and refuses by itself. Shortly before the period is over one request is let through to look again, so that
 * usually nobody waits for what it sees; when it is over, all do. A unit that came back is sold within a period, and a
 * sold-out sale costs Redis a call per three quarters of a period and process at most, however many people ask. Whoever
 * waits for a call when the latch closes is refused with all others.
 *
 * It only repeats what the gate has said: a quantity that the gate has not refused as sold out in its last reply is asked
 * for, so that a sale that has ended is "ended" and a quantity over the limit is over the limit.
 *
 * A buyer who holds is not told "sold out": the list of holders routes them to the gate. It is read again when
 * (generation, version) of the sale moved, and nothing is latched without it; with more holders than the bound the gate
 * is asked in batches. Only a hold that is younger than a period and was won through another process can be missed.
 * A look that fails is a failure for all who waited for it, never a longer latch.
 */
import type { Outcome } from '../domain/outcomes.ts';

/** What the reply to a batch of reservations told of the sale. `sentAt` is when it was asked, by `performance.now()`. */
export type Seen = {
  sentAt: number;
  stock: number;
  generation: string;
  version: number;
  /** The largest quantity that was refused as sold out; 0: the sale is shut; undefined: the reply tells neither. */
  soldOutUpTo: number | undefined;
};

/** All buyers who hold, of one moment: `of` is its generation:version. */
export type Holders = { of: string; users: Set<string> };

export type LatchOptions = {
  /** How long what was seen is believed, in milliseconds; 0 asks the gate every time. */
  periodMs: number;
  /** Reads who holds; undefined when there are more than this process wants to remember. */
  readHolders: (saleId: string) => Promise<Holders | undefined>;
  /** Told when they could not be read: nothing is latched until they are. */
  onError: (error: unknown) => void;
};

type View = {
  stock: number;
  soldOutUpTo: number;
  /** When the gate was asked, when somebody is to look again, until when it is believed, by `performance.now()`. */
  sentAt: number;
  lookAt: number;
  until: number;
  /** generation:version of the stock, and of the holders; the latch is on only while they are the same. */
  of: string;
  holdersOf: string;
  holders: Set<string>;
  /** generation:version at which there were more holders than this process remembers: not asked again before it moves. */
  tooManyAt: string;
  reading: boolean;
  looking: Promise<Outcome> | undefined;
};

/**
 * The share of a period after which somebody looks again. On a busy machine a look takes several milliseconds, and
 * everybody who waits for it costs more than a refusal.
 */
export const LOOK_AFTER = 0.75;

const SOLD_OUT: Outcome = { outcome: 'sold_out' };

export class Latch {
  #views = new Map<string, View>();
  #options: LatchOptions;

  constructor(options: LatchOptions) {
    this.#options = options;
  }

  /**
   * Whether this process may say "sold out" by itself. Synchronous: this is the path of 99.5 % of all requests. Whoever
   * is not refused asks the gate, and by that looks for all.
   */
  refuses(saleId: string, userId: string, qty: number): boolean {
    const view = this.#views.get(saleId);
    if (view === undefined || !this.#covers(view, userId, qty)) return false;
    return performance.now() < (view.looking ? view.until : view.lookAt);
  }

  /**
   * What may be told to a buyer who waits for a call that has not been made: the latch has closed meanwhile. The call
   * that looks again is made all the same.
   */
  known(saleId: string, userId: string, qty: number): Outcome | undefined {
    const view = this.#views.get(saleId);
    return view && this.#covers(view, userId, qty) && performance.now() < view.lookAt ? SOLD_OUT : undefined;
  }

  #covers(view: View, userId: string, qty: number): boolean {
    return view.stock <= 0 && qty <= view.soldOutUpTo && view.of === view.holdersOf && !view.holders.has(userId);
  }

  /** Whether a look that is under way will tell this buyer too: then nothing more is asked. */
  joins(saleId: string, userId: string, qty: number): boolean {
    const view = this.#views.get(saleId);
    return view?.looking !== undefined && this.#covers(view, userId, qty);
  }

  /**
   * Asks, or waits for the look that somebody else has just taken.
   * @param ask asks the gate for this buyer
   * @throws whatever `ask` throws; also when the look that was waited for failed
   */
  async reserve(saleId: string, userId: string, qty: number, ask: () => Promise<Outcome>): Promise<Outcome> {
    const view = this.#views.get(saleId);
    if (!view || !this.#covers(view, userId, qty)) return ask();
    if (view.looking) {
      await view.looking;
      const seen = this.#views.get(saleId);
      return seen && this.#covers(seen, userId, qty) && performance.now() < seen.until ? SOLD_OUT : ask();
    }
    view.looking = ask();
    try {
      return await view.looking;
    } finally {
      view.looking = undefined;
    }
  }

  /** Takes in what a reply of the gate told. */
  see(saleId: string, seen: Seen | undefined): void {
    if (!seen || this.#options.periodMs === 0) {
      this.#views.delete(saleId); // not loaded is not sold out
      return;
    }
    const view = this.#views.get(saleId) ?? blank();
    if (seen.sentAt < view.sentAt) return; // an answer that was overtaken
    this.#views.set(saleId, view);
    view.stock = seen.stock;
    view.sentAt = seen.sentAt;
    if (seen.soldOutUpTo !== undefined) {
      view.soldOutUpTo = seen.soldOutUpTo;
      view.lookAt = seen.sentAt + this.#options.periodMs * LOOK_AFTER;
      view.until = seen.sentAt + this.#options.periodMs;
    }
    view.of = `${seen.generation}:${seen.version}`;
    if (view.stock <= 0 && view.of !== view.holdersOf && view.of !== view.tooManyAt && !view.reading) {
      view.reading = true;
      this.#readHolders(saleId, view).catch(this.#options.onError);
    }
  }

  /**
   * The next reply may come from another server, one that has forgotten the last writes: what it has under a version is
   * not what the first one had.
   */
  forget(): void {
    this.#views.clear();
  }

  /** A process outlives its sales, and holders are many. */
  forgetAllBut(living: ReadonlySet<string>): void {
    for (const saleId of this.#views.keys()) if (!living.has(saleId)) this.#views.delete(saleId);
  }

  async #readHolders(saleId: string, view: View): Promise<void> {
    const { of } = view;
    try {
      const read = await this.#options.readHolders(saleId);
      view.holders = read?.users ?? new Set();
      view.holdersOf = read?.of ?? '';
      view.tooManyAt = read ? '' : of;
    } finally {
      view.reading = false;
    }
  }
}

/** What a batch's answers say about buyers who have not asked: see {@link Seen}. */
export function soldOutUpTo(batch: { qty: number }[], outcomes: Outcome[]): number | undefined {
  let upTo: number | undefined;
  outcomes.forEach(({ outcome }, n) => {
    if (outcome === 'sold_out') upTo = Math.max(upTo ?? 0, batch[n]?.qty ?? 0);
    else if (outcome === 'paused' || outcome === 'not_started' || outcome === 'ended') upTo = 0;
  });
  return upTo;
}

function blank(): View {
  return {
    ...{ stock: 0, soldOutUpTo: 0, sentAt: -Infinity, lookAt: -Infinity, until: -Infinity, of: '?' },
    ...{ holdersOf: '', holders: new Set<string>(), tooManyAt: '', reading: false, looking: undefined },
  };
}

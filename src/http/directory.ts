/**
 * The sales that this process knows, refreshed from the ledger: unknown sales are told apart without a query per
 * request, and what is left of a sale is read from the gate once a second at most, however many ask.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sale } from '../domain/sale.ts';
import type { Gate, GateFigures } from '../gate/gate.ts';
import { LedgerUnavailable, type Pool } from '../ledger/db.ts';
import { listSales } from '../ledger/sales.ts';
import type { Log } from '../operations/stores.ts';
import { MayReturn } from './may-return.ts';

/** A sale that this process has not heard of is looked for, but at most this often: whoever asks meanwhile waits. */
const LOOK_EVERY_MS = 100;
const FIGURES_FOR_MS = 1000;

type Seen = { at: number; figures: Promise<GateFigures | undefined> };

export class Directory {
  readonly mayReturn: MayReturn;
  #sales = new Map<string, Sale>();
  #seen = new Map<string, Seen>();
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;
  #nextLook: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stores: { pool: Pool; gate: Gate; log: Log };
  #patienceMs: number;

  /** @param patienceMs how long a request waits for the ledger at most */
  constructor(stores: { pool: Pool; gate: Gate; log: Log }, patienceMs: number) {
    this.#stores = stores;
    this.mayReturn = new MayReturn(stores.pool);
    this.#patienceMs = patienceMs;
  }

  /** Reads the list, and again every `everyMs`, with what may return of sold-out sales; a read that fails keeps the list and is logged. */
  async start(everyMs: number): Promise<void> {
    await this.refresh();
    this.#timer = setInterval(() => {
      const refreshed = this.refresh().then(() => this.mayReturn.refresh());
      refreshed.catch((error: unknown) => {
        this.#stores.log.warn({ err: error }, 'the list of sales could not be refreshed: the last one is kept');
      });
    }, everyMs).unref(); // the server keeps its process alive; one that could not listen is to end
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** One read at a time, however many wait for it. @throws {LedgerUnavailable} */
  refresh(): Promise<void> {
    this.#reading ??= listSales(this.#stores.pool)
      .then((sales) => {
        this.#sales = new Map(sales.map((sale) => [sale.saleId, sale]));
        this.#readAt = performance.now();
        this.#forgetAllBut(new Set(sales.filter(({ state }) => state !== 'closed').map(({ saleId }) => saleId)));
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  #forgetAllBut(living: ReadonlySet<string>): void {
    this.#stores.gate.forgetAllBut(living);
    this.mayReturn.forgetAllBut(living);
    for (const saleId of this.#seen.keys()) if (!living.has(saleId)) this.#seen.delete(saleId);
  }

  /** From memory alone. */
  known(saleId: string): Sale | undefined {
    return this.#sales.get(saleId);
  }

  /**
   * A sale that may have been created a moment ago through another process.
   * @throws {LedgerUnavailable} when the ledger is away, or silent, and the sale is not known here
   */
  async find(saleId: string): Promise<Sale | undefined> {
    if (!this.#sales.has(saleId)) await this.#inTime((this.#nextLook ??= this.#look()));
    return this.#sales.get(saleId);
  }

  /** A read that begins from now on: one that is under way may have missed what its asker knows to exist. */
  async #look(): Promise<void> {
    await this.#reading?.catch(() => undefined); // whoever waits for that one is told
    const wait = this.#readAt + LOOK_EVERY_MS - performance.now();
    if (wait > 0) await sleep(wait);
    this.#nextLook = undefined;
    await this.refresh();
  }

  /** The read may take longer than a request has. */
  async #inTime(look: Promise<void>): Promise<void> {
    const done = new AbortController();
    const late = sleep(this.#patienceMs, undefined, { signal: done.signal }).then(() => {
      throw new LedgerUnavailable(`the sales could not be read within ${this.#patienceMs} ms`);
    });
    try {
      await Promise.race([look, late]);
    } finally {
      late.catch(() => undefined); // called off, which rejects it too
      done.abort();
    }
  }

  /** What the gate has of a sale, at most a second old, or `maxAgeMs`. @throws {GateUnavailable} */
  figures(saleId: string, maxAgeMs = FIGURES_FOR_MS): Promise<GateFigures | undefined> {
    const seen = this.#seen.get(saleId);
    if (seen && performance.now() - seen.at < maxAgeMs) return seen.figures;
    const figures = this.#stores.gate.figures(saleId);
    this.#seen.set(saleId, { at: performance.now(), figures });
    return figures;
  }
}

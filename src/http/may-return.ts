/**
 * Whether units of a sold-out sale may still come back, and when to look: what "sold out" is answered with.
 *
 * The gate knows what is held, the ledger what is paid. Each process asks the ledger with its refresh of the sales (once
 * a second), in one statement, about the sales of which it said "sold out" since the last time. The answer is made then
 * and not per request. "Never again" is said only when every unit is paid in one snapshot of the ledger: a paid order
 * stays paid, so nothing but a larger total changes it. Whatever is not known is "maybe".
 */
import type { Pool } from '../ledger/db.ts';
import { soldOutSales, type SoldOutSale } from '../ledger/sales.ts';
import type { Sale } from '../domain/sale.ts';
import type { FastifyReply } from 'fastify';
import { count } from './counts.ts';
import { problemBody, PROBLEM_TYPE } from './problem.ts';

/** How "sold out" is answered: the document, and of `retryAfter` (seconds, none: never) a different one each time. */
export type SoldOut = { body: string; retryAfter: string[]; turn: number; asked: boolean };

/** So that those who were refused together do not come back together, they are spread over as many seconds. */
const SPREAD = 8;
/** From a hold's end to the unit's being for sale: a keeper's pass, and the latch. */
const SWEEP_SECONDS = 1;
/** Units that no order has: holds that are still in the queue, or units given up, expired or forfeited, not yet for sale. */
const ON_THEIR_WAY_SECONDS = 5;

const MAYBE = problemBody('sold_out', { mayReturn: true });
const NEVER = problemBody('sold_out', { mayReturn: false });

export class MayReturn {
  #sales = new Map<string, SoldOut>();
  #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Synchronous, and no more than a look: this is the path of 99.5 % of all requests. */
  soldOut(sale: Pick<Sale, 'saleId' | 'holdSeconds'>): SoldOut {
    let known = this.#sales.get(sale.saleId);
    if (known === undefined) {
      // What is held was won a moment ago, as far as this process knows.
      known = { ...maybe(sale.holdSeconds), turn: 0, asked: true };
      this.#sales.set(sale.saleId, known);
    }
    known.asked = true;
    return known;
  }

  /** Of sales that are over nothing is kept. */
  forgetAllBut(living: ReadonlySet<string>): void {
    for (const saleId of this.#sales.keys()) if (!living.has(saleId)) this.#sales.delete(saleId);
  }

  /** Asks the ledger about what was said "sold out" of since the last time. @throws {LedgerUnavailable} */
  async refresh(): Promise<void> {
    const asked = [...this.#sales].filter(([, known]) => known.asked).map(([saleId]) => saleId);
    if (asked.length === 0) return;
    for (const found of await soldOutSales(this.#pool, asked)) {
      const known = this.#sales.get(found.saleId);
      if (known) Object.assign(known, present(found), { asked: false });
    }
  }
}

function present({ sold, total, nextEndSeconds }: SoldOutSale): Pick<SoldOut, 'body' | 'retryAfter'> {
  if (nextEndSeconds === null) return sold >= total ? { body: NEVER, retryAfter: [] } : maybe(ON_THEIR_WAY_SECONDS);
  return maybe(Math.max(0, nextEndSeconds) + SWEEP_SECONDS);
}

function maybe(seconds: number): Pick<SoldOut, 'body' | 'retryAfter'> {
  const first = Math.max(1, Math.ceil(seconds));
  return { body: MAYBE, retryAfter: Array.from({ length: SPREAD }, (_, n) => String(first + n)) };
}

export function sendSoldOut(reply: FastifyReply, known: SoldOut): FastifyReply {
  count('sold_out');
  known.turn = (known.turn + 1) % SPREAD;
  const retryAfter = known.retryAfter[known.turn];
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
  return reply.code(409).header('content-type', PROBLEM_TYPE).send(known.body);
}

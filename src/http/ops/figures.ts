/**
 * A sale as the room shows it once a second: gate, queue and ledger side by side, how fast and how far behind. Each part
 * is read by itself; one that is away is null and named.
 */
import { lastJournal, newestJournal } from '../../ledger/journal.ts';
import { getSale, ledgerFigures } from '../../ledger/sales.ts';
import { orderLag } from '../../ledger/search.ts';
import { queueDepth } from '../../queue/depth.ts';
import { Reading } from '../../reading.ts';
import type { Api } from '../app.ts';
import type { Reading as Topic } from '../fan-out.ts';
import { presentSale } from '../sales.ts';
import { readMeters, speedSince, type Meters, type Speed } from './meters.ts';
import type { Room } from './room.ts';

export const EVERY_MS = 1000;
/** So that each poll reads anew, if reading is cheap; what is dear is kept for fifty times as long as it took. */
const READ = { keepMs: EVERY_MS / 2, patienceMs: EVERY_MS };
const PARTS_KEPT = 200;

type Parts = ReturnType<Figures['partsOf']>;

export class Figures {
  readonly #api: Api;
  readonly #queue: Reading<Awaited<ReturnType<typeof queueDepth>>>;
  readonly #speed: Reading<Speed | null>;
  readonly #parts = new Map<string, Parts>();

  constructor(api: Api, room: Room) {
    const { sqs, config } = api;
    this.#api = api;
    this.#queue = new Reading(() => queueDepth(sqs, config.SQS_QUEUE_URL, config.QUEUE_TIMEOUT_MS), READ);
    this.#speed = new Reading(speedOf(room), READ);
  }

  /** What is read of one sale, whoever asks. */
  partsOf(saleId: string) {
    const { pool, gate } = this.#api.stores;
    return {
      sale: new Reading(() => getSale(pool, saleId), READ),
      gate: new Reading(async () => (await gate.figures(saleId)) ?? ('not_loaded' as const), READ),
      ledger: new Reading(() => ledgerFigures(pool, saleId), READ),
      lag: new Reading(() => orderLag(pool, saleId), READ),
      journal: new Reading(async () => {
        const [last] = await newestJournal(pool, { saleId, before: null, limit: 1 });
        return { newest: last?.entryId ?? 0, audit: (await lastJournal(pool, saleId, 'audit'))?.entryId ?? 0 };
      }, READ),
    };
  }

  /** @returns for each sale its figures, as the stream tells them */
  async read(saleIds: string[]): Promise<Map<string, Topic>> {
    const topics = await Promise.all(
      saleIds.map(async (saleId): Promise<[string, Topic]> => {
        return [saleId, { event: 'figures', data: JSON.stringify(await this.of(saleId)) }];
      }),
    );
    return new Map(topics);
  }

  async of(saleId: string) {
    const parts = this.#known(saleId);
    const [sale, gate, ledger, lag, journal, queue, speed] = await Promise.all([
      ...([parts.sale.latest(), parts.gate.latest(), parts.ledger.latest(), parts.lag.latest()] as const),
      ...([parts.journal.latest(), this.#queue.latest(), this.#speed.latest()] as const),
    ]);
    const away = [
      ...(gate === undefined ? ['the gate'] : []),
      ...(ledger === undefined || sale === undefined ? ['the ledger'] : []),
      ...(queue === undefined ? ['the queue'] : []),
    ];
    const { now, ...units } = gate === undefined || gate === 'not_loaded' ? { now: Date.now() } : gate;
    const loaded = 'stock' in units ? units : null;
    return {
      at: new Date(now).toISOString(),
      sale: sale ? presentSale(sale, now) : null,
      gate: loaded,
      gateNotLoaded: gate === 'not_loaded',
      ledger: ledger ?? null,
      queue: queue ?? null,
      // Above zero: won, and not in the ledger yet. Below: the gate has forgotten some.
      drift: loaded && ledger ? loaded.held - ledger.sold : null,
      lag: lag ?? null,
      speed: speed ?? null,
      journal: journal ?? null,
      away,
    };
  }

  #known(saleId: string): Parts {
    const known = this.#parts.get(saleId);
    if (known) return known;
    const [oldest] = this.#parts.keys();
    if (this.#parts.size >= PARTS_KEPT && oldest !== undefined) this.#parts.delete(oldest);
    const parts = this.partsOf(saleId);
    this.#parts.set(saleId, parts);
    return parts;
  }
}

/** @returns what reads the speed since it was called last; null the first time, and after a long pause */
function speedOf({ metrics }: Room): () => Promise<Speed | null> {
  let last: { at: number; meters: Meters } | undefined;
  return async () => {
    const meters = readMeters(await metrics());
    const now = { at: performance.now(), meters };
    const before = last;
    last = now;
    const seconds = before ? (now.at - before.at) / 1000 : 0;
    return before && seconds < 10 ? speedSince(before.meters, meters, seconds) : null;
  };
}

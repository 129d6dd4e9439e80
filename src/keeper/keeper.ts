/**
 * The keeper: one pass is a public function; the timer around it is a thin guard against overlap.
 *
 * Shards go side by side; within a shard one thing at a time: what is due expires, each sale is tended, and then a piece
 * of the full pass is done, so that a large sale's comparison does not keep its deadlines waiting.
 */
import type { SQSClient } from '@aws-sdk/client-sqs';
import pLimit from 'p-limit';
import { StaleToken } from '../domain/outcomes.ts';
import type { Sale } from '../domain/sale.ts';
import { shardOf } from '../domain/shard.ts';
import { settleParked } from '../ledger/payments.ts';
import { listSales } from '../ledger/sales.ts';
import { finish } from '../operations/finish.ts';
import { asLabel, keeperDone, keeperFailures, keeperLastPass, keeperPassSeconds, parkedSettled } from '../meter.ts';
import type { Log, Stores } from '../operations/stores.ts';
import type { PaymentProvider } from '../provider/port.ts';
import type { Leases } from './leases.ts';
import { reconcileSteps, type Reconciled, type ReconcileOptions } from './reconcile.ts';
import { closePages, type PagesOptions } from './pages.ts';
import { payRefunds, type RefundOptions } from './refund.ts';
import { inSpan } from '../span.ts';
import { sweep } from './sweep.ts';
import { tend, type LostSince, type TendOptions } from './tend.ts';

export type KeeperOptions = {
  intervalMs: number;
  /** From the end of one full pass over a sale to the beginning of the next. */
  reconcileMs: number;
  /** Orders per transaction and per script call. */
  batch: number;
  parkedGraceMs: number;
  tend: TendOptions;
  reconcile: ReconcileOptions;
  refund: RefundOptions;
  pages: PagesOptions;
};

/** What the keeper works with; `provider` is missing where refunds are somebody else's. */
export type KeeperDeps = { stores: Stores; sqs: SQSClient; leases: Leases; provider: PaymentProvider | undefined };

/** A sale's full pass: under way, or when the last one ended (by `performance.now()`). */
type Walk = { steps?: AsyncGenerator<undefined, Reconciled>; endedAt: number; resentAt: Map<string, number> };

/** What is remembered between passes; all of it may be lost. */
export type KeeperMemory = {
  lostSince: LostSince;
  walks: Map<string, Walk>;
  /** Pages being closed at the provider, beside everything else: nothing of ours waits for that. */
  closing?: Promise<void> | undefined;
};
export const newMemory = (): KeeperMemory => ({ lostSince: new Map(), walks: new Map() });

/** Shards looked at side by side. */
const SIDE_BY_SIDE = 8;
/** How long a full pass goes on before what is due is looked at again. */
const PIECE_MS = 250;

/** One pass. Each part by itself: one that fails (a store is away) does not keep the others from their work. */
export async function keepOnce(deps: KeeperDeps, options: KeeperOptions, memory: KeeperMemory = newMemory()) {
  const { stores, leases, provider } = deps;
  const beganAt = performance.now();
  const checkout = provider?.checkout;
  if (checkout && !memory.closing) {
    memory.closing = part('pages', {}, stores.log, () => closePages(stores, checkout, options.pages)).finally(() => {
      memory.closing = undefined;
    });
  }
  await part('shards', {}, stores.log, async () => {
    const sales = (await listSales(stores.pool)).filter(({ state }) => state !== 'closed');
    const byShard = Map.groupBy(sales, ({ saleId }) => shardOf(saleId));
    const held = await leases.claim(new Set(byShard.keys()));
    const limit = pLimit(SIDE_BY_SIDE);
    await Promise.all(
      held.map((shard) => limit(() => keepShard(deps, options, memory, shard, byShard.get(shard) ?? []))),
    );
    return {};
  });
  await part('parked', {}, stores.log, async () => {
    const settled = await settleParked(stores.pool, options.parkedGraceMs, options.batch);
    await finish(
      stores,
      settled.flatMap(({ ended }) => ended),
    );
    for (const { outcome } of settled) parkedSettled.inc({ outcome: asLabel(outcome) });
    return { settled: settled.length };
  });
  if (provider) await part('refunded', {}, stores.log, () => payRefunds(stores, provider, options.refund));
  keeperPassSeconds.observe((performance.now() - beganAt) / 1000);
  keeperLastPass.setToCurrentTime();
}

async function keepShard(
  deps: KeeperDeps,
  options: KeeperOptions,
  memory: KeeperMemory,
  shard: number,
  sales: Sale[],
): Promise<void> {
  const { stores, sqs, leases } = deps;
  const tokenOf = () => leases.token(shard);
  const saleIds = sales.map(({ saleId }) => saleId);
  try {
    await part('swept', { shard }, stores.log, () => sweep(stores, options.batch, { saleIds, tokenOf }));
    for (const sale of sales) {
      const { saleId } = sale;
      await part('tended', { saleId }, stores.log, () =>
        tend(stores, sqs, sale, options.tend, memory.lostSince, tokenOf()),
      );
      await part('reconciled', { saleId }, stores.log, () => walkOn(deps, options, memory, saleId, tokenOf));
    }
  } catch (error) {
    if (!(error instanceof StaleToken)) throw error;
    leases.letGo(shard, error.message);
    for (const saleId of saleIds) memory.walks.delete(saleId);
  }
}

/** Goes on with the sale's full pass for a while, or begins one when it is time. @returns what a pass that ended did */
async function walkOn(
  { stores }: KeeperDeps,
  { reconcile, reconcileMs }: KeeperOptions,
  { walks }: KeeperMemory,
  saleId: string,
  tokenOf: () => string,
): Promise<Counts> {
  const walk = walks.get(saleId) ?? { endedAt: -Infinity, resentAt: new Map<string, number>() };
  walks.set(saleId, walk);
  const now = performance.now();
  if (!walk.steps && now - walk.endedAt < reconcileMs) return {};
  if (!(await stores.gate.figures(saleId))) return {}; // lost: tending it comes first
  const steps = (walk.steps ??= reconcileSteps({
    stores,
    saleId,
    options: reconcile,
    resentAt: walk.resentAt,
    tokenOf,
  }));
  try {
    while (performance.now() - now < PIECE_MS) {
      const step = await steps.next();
      if (!step.done) continue;
      delete walk.steps;
      walk.endedAt = performance.now();
      const { holds: _, orders: __, ...changes } = step.value;
      return changes;
    }
  } catch (error) {
    delete walk.steps;
    throw error;
  }
  return {};
}

type Counts = Record<string, number>;
const didSomething = (counts: Counts) => Object.values(counts).some((count) => count > 0);

/** A lost lease is the shard's end; anything else is logged, and the next pass tries it again. */
async function part(
  name: string,
  about: Record<string, string | number>,
  log: Log,
  work: () => Promise<Counts>,
): Promise<void> {
  try {
    const counts = await inSpan(`keeper ${name}`, { root: true, attributes: about, worthIt: didSomething }, work);
    for (const [what, count] of Object.entries(counts)) if (count > 0) keeperDone.inc({ part: name, what }, count);
    if (didSomething(counts)) log.info({ ...about, ...counts }, name);
  } catch (error) {
    if (error instanceof StaleToken) throw error;
    keeperFailures.inc({ part: name });
    log.error({ ...about, err: error }, `${name}: failed; the next pass tries it again`);
  }
}

export function startKeeper(deps: KeeperDeps, options: KeeperOptions) {
  const memory = newMemory();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const next = () => {
    running = keepOnce(deps, options, memory).then(() => {
      if (!stopped) timer = setTimeout(next, options.intervalMs);
    });
  };
  deps.leases.start();
  next();
  return {
    /** Begins no new pass, waits for the one under way, gives the leases back. */
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
      await memory.closing;
      await deps.leases.stop();
    },
  };
}

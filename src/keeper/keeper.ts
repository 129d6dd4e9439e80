/**
 * The keeper: one pass is a public function; the timers around are thin guards against overlap. A short pass looks after
 * what cannot wait (deadlines, marks, lost gates, parked payments, refunds); a long one compares gate and ledger whole.
 */
import type { SQSClient } from '@aws-sdk/client-sqs';
import pLimit from 'p-limit';
import { settleParked } from '../ledger/payments.ts';
import { listSales } from '../ledger/sales.ts';
import { finish } from '../operations/finish.ts';
import type { Log, Stores } from '../operations/stores.ts';
import type { PaymentProvider } from '../provider/port.ts';
import { reconcile, type ReconcileOptions, type ResentAt } from './reconcile.ts';
import { payRefunds, type RefundOptions } from './refund.ts';
import { sweep } from './sweep.ts';
import { tend, type LostSince, type TendOptions } from './tend.ts';

export type KeeperOptions = {
  intervalMs: number;
  reconcileMs: number;
  /** Orders per transaction and per script call. */
  batch: number;
  parkedGraceMs: number;
  tend: TendOptions;
  reconcile: ReconcileOptions;
  refund: RefundOptions;
};

/** What the keeper works with; `provider` is missing where refunds are somebody else's. */
export type KeeperDeps = { stores: Stores; sqs: SQSClient; provider: PaymentProvider | undefined };

/** What is remembered between passes; all of it may be lost. */
export type KeeperMemory = { lostSince: LostSince; resentAt: ResentAt };
export const newMemory = (): KeeperMemory => ({ lostSince: new Map(), resentAt: new Map() });

/** Sales looked at side by side. */
const SIDE_BY_SIDE = 8;

/** The short pass. Each part by itself: one that fails (a store is away) does not keep the others from their work. */
export async function keepOnce(deps: KeeperDeps, options: KeeperOptions, memory = newMemory()): Promise<void> {
  const { stores, sqs, provider } = deps;
  await part('swept', stores.log, () => sweep(stores, options.batch));
  await eachSale('tended', stores, (sale) => tend(stores, sqs, sale, options.tend, memory.lostSince));
  await part('parked', stores.log, async () => {
    const settled = await settleParked(stores.pool, options.parkedGraceMs, options.batch);
    await finish(
      stores,
      settled.flatMap(({ ended }) => ended),
    );
    return { settled: settled.length };
  });
  if (provider) await part('refunded', stores.log, () => payRefunds(stores, provider, options.refund));
}

/** The long pass: each sale reconciled once. */
export async function reconcileAll(
  { stores }: Pick<KeeperDeps, 'stores'>,
  options: ReconcileOptions,
  memory = newMemory(),
): Promise<void> {
  await eachSale('reconciled', stores, async ({ saleId }) => {
    const { holds: _, orders: __, ...changes } = await reconcile(stores, saleId, options, memory.resentAt);
    return changes;
  });
}

type Counts = Record<string, number>;

async function eachSale(
  name: string,
  stores: Stores,
  work: (sale: Awaited<ReturnType<typeof listSales>>[number]) => Promise<Counts>,
) {
  await part(name, stores.log, async () => {
    const sales = (await listSales(stores.pool)).filter(({ state }) => state !== 'closed');
    const limit = pLimit(SIDE_BY_SIDE);
    await Promise.all(sales.map((sale) => limit(() => part(`${name} ${sale.saleId}`, stores.log, () => work(sale)))));
    return {};
  });
}

async function part(name: string, log: Log, work: () => Promise<Counts>): Promise<void> {
  try {
    const counts = await work();
    if (Object.values(counts).some((count) => count > 0)) log.info(counts, name);
  } catch (error) {
    log.error({ err: error }, `${name}: failed; the next pass tries it again`);
  }
}

export function startKeeper(deps: KeeperDeps, options: KeeperOptions) {
  const memory = newMemory();
  const passes = [
    repeat(options.intervalMs, () => keepOnce(deps, options, memory)),
    repeat(options.reconcileMs, () => reconcileAll(deps, options.reconcile, memory)),
  ];
  return {
    /** Begins no new pass and waits for those under way. */
    stop: async () => {
      await Promise.all(passes.map((stop) => stop()));
    },
  };
}

/** Runs `pass`, and again `everyMs` after its end. @returns how to stop */
function repeat(everyMs: number, pass: () => Promise<void>): () => Promise<void> {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const next = () => {
    running = pass().then(() => {
      if (!stopped) timer = setTimeout(next, everyMs);
    });
  };
  next();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await running;
  };
}

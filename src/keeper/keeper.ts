/** The keeper: one pass is a public function; the timer around it is a thin guard against overlap. */
import type { Applied } from '../ledger/payments.ts';
import { settleParked } from '../ledger/payments.ts';
import { listSales } from '../ledger/sales.ts';
import { finish } from '../operations/finish.ts';
import type { Stores } from '../operations/stores.ts';
import type { PaymentProvider } from '../provider/port.ts';
import { payRefunds, type RefundOptions } from './refund.ts';
import { resend, type ResendOptions } from './resend.ts';
import { sweep } from './sweep.ts';

export type KeeperOptions = {
  intervalMs: number;
  batch: number;
  parkedGraceMs: number;
  resend: ResendOptions;
  refund: RefundOptions;
};

/** Each part by itself: one that fails (a store is away) does not keep the others from their work. */
export async function keepOnce(
  stores: Stores,
  provider: PaymentProvider | undefined,
  options: KeeperOptions,
): Promise<void> {
  const { pool, log } = stores;
  await part('sweep', log, () => sweep(stores, options.batch));
  await part('resend', log, async () => {
    const sales = (await listSales(pool)).filter(({ state }) => state !== 'closed');
    const sum = { resent: 0, failed: 0 };
    for (const sale of sales) {
      const { resent, failed } = await resend(stores, sale, options.resend);
      sum.resent += resent;
      sum.failed += failed;
    }
    return sum;
  });
  await part('parked', log, async () => {
    const settled = await settleParked(pool, options.parkedGraceMs, options.batch);
    await finish(
      stores,
      settled.flatMap((applied: Applied) => applied.ended),
    );
    return { settled: settled.length };
  });
  if (provider) await part('refunds', log, () => payRefunds(stores, provider, options.refund));
}

async function part(name: string, log: Stores['log'], work: () => Promise<Record<string, number>>): Promise<void> {
  try {
    const counts = await work();
    if (Object.values(counts).some((count) => count > 0)) log.info(counts, name);
  } catch (error) {
    log.error({ err: error }, `${name} failed: the next pass tries it again`);
  }
}

export function startKeeper(stores: Stores, provider: PaymentProvider | undefined, options: KeeperOptions) {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let pass = Promise.resolve();
  const next = () => {
    pass = keepOnce(stores, provider, options).then(() => {
      if (!stopped) timer = setTimeout(next, options.intervalMs);
    });
  };
  next();
  return {
    /** Begins no new pass and waits for the one under way. */
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await pass;
    },
  };
}

/** Commands that do one thing and end: migrate, sweep, rebuild, and the care of sales. */
import { z } from 'zod';
import { readConfig } from '../config.ts';
import { SaleId } from '../domain/reservation.ts';
import { phase, SaleSettings, wrongTimes, type Sale } from '../domain/sale.ts';
import { shardOf } from '../domain/shard.ts';
import { sweep } from '../keeper/sweep.ts';
import { checkSchema, migrate } from '../ledger/migrate.ts';
import { getSale, ledgerFigures, listSales } from '../ledger/sales.ts';
import { rebuild } from '../keeper/rebuild.ts';
import { reconcile } from '../keeper/reconcile.ts';
import { applySettings, putSale, resizeSale, setState } from '../operations/sales.ts';
import { deadLetters } from '../queue/dead-letters.ts';
import { createLogger, keeperOptions, rebuildOptions, wire, type Wired } from '../wiring.ts';

const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);

/** Wires up, checks the schema, works, closes. */
async function withStores<T>(work: (wired: Wired, config: ReturnType<typeof readConfig>) => Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  const wired = wire(config, createLogger({ ...config, LOG_LEVEL: process.env.LOG_LEVEL ? config.LOG_LEVEL : 'warn' }));
  try {
    // Such a command asks once, and nothing waits in the client for a connection (see wiring.ts).
    await Promise.all([checkSchema(wired.stores.pool), wired.connected()]);
    return await work(wired, config);
  } finally {
    await wired.close();
  }
}

export async function migrateCommand(): Promise<number> {
  const applied = await migrate(readConfig(process.env).DATABASE_URL);
  process.stdout.write(applied.length === 0 ? 'nothing to apply\n' : `applied: ${applied.join(', ')}\n`);
  return 0;
}

/** Works on sales under their leases, as a keeper does; a shard that a keeper has is left to it, and told. */
async function underLeases(
  { stores, leases }: Wired,
  sales: Sale[],
  work: (sales: Sale[], tokenOf: (saleId: string) => string) => Promise<number>,
): Promise<number> {
  const kept: Sale[] = [];
  for (const [shard, own] of Map.groupBy(sales, ({ saleId }) => shardOf(saleId))) {
    const owner = await leases.claimOne(shard);
    if (owner === undefined) kept.push(...own);
    else
      stores.log.warn({ shard, sales: own.map(({ saleId }) => saleId) }, `left to the keeper that has them: ${owner}`);
  }
  leases.start();
  try {
    return await work(kept, (saleId) => leases.token(shardOf(saleId)));
  } finally {
    await leases.stop();
  }
}

async function openSales({ stores }: Wired, saleId?: string): Promise<Sale[]> {
  const sales = (await listSales(stores.pool)).filter(({ state }) => state !== 'closed');
  const wanted = saleId === undefined ? sales : sales.filter((sale) => sale.saleId === saleId);
  if (saleId !== undefined && wanted.length === 0) throw new Error(`there is no open sale ${saleId}`);
  return wanted;
}

export function sweepCommand(): Promise<number> {
  return withStores(async (wired, config) =>
    underLeases(wired, await openSales(wired), async (sales, tokenOf) => {
      const saleIds = sales.map(({ saleId }) => saleId);
      const swept = await sweep(wired.stores, config.KEEPER_BATCH, { saleIds, tokenOf });
      print(swept);
      return swept.waiting === 0 ? 0 : 1;
    }),
  );
}

export function rebuildCommand(saleId: string): Promise<number> {
  return withStores(async ({ stores, sqs }, config) => {
    if (!(await getSale(stores.pool, saleId))) throw new Error(`there is no sale ${saleId}`);
    const answer = await rebuild(stores, sqs, saleId, rebuildOptions(config));
    process.stdout.write(
      answer === 'live' ? `sale ${saleId} has a live gate: nothing was done\n` : `sale ${saleId}: the gate is open\n`,
    );
    return 0;
  });
}

/** @returns 0 when everything agrees or was made to; 1 when something is still to be done, or a keeper has the sale */
export function reconcileCommand(saleId: string | undefined): Promise<number> {
  return withStores(async (wired, config) => {
    const wanted = await openSales(wired, saleId);
    return underLeases(wired, wanted, async (sales, tokenOf) => {
      let blocked = 0;
      for (const sale of sales) {
        await applySettings(wired.stores, sale.saleId, tokenOf(sale.saleId));
        const memory = { resentAt: new Map<string, number>(), tokenOf };
        const done = await reconcile(wired.stores, sale.saleId, keeperOptions(config).reconcile, memory);
        print({ saleId: sale.saleId, ...done });
        blocked += done.blocked;
      }
      return blocked === 0 && (saleId === undefined || sales.length > 0) ? 0 : 1;
    });
  });
}

/** Lists what is in the dead-letter queue, or sends it back. @returns 1 when there is something that cannot be read */
export function deadLettersCommand({ replay, limit }: { replay: boolean; limit: number }): Promise<number> {
  return withStores(async ({ sqs }, config) => {
    const letters = await deadLetters(sqs, config.SQS_QUEUE_URL, replay, limit);
    for (const { messageId, replayed, why, body } of letters) {
      const what = replayed ? 'sent back' : why === undefined ? 'can be sent back: --replay' : 'cannot be read, stays';
      process.stdout.write(`${messageId}  ${what}\n  ${body}\n${why === undefined ? '' : `  ${why}\n`}`);
    }
    process.stdout.write(
      `${letters.length} dead letters, ${letters.filter(({ replayed }) => replayed).length} sent back\n`,
    );
    return letters.some(({ why }) => why !== undefined) ? 1 : 0;
  });
}

export type SaleOptions = {
  name: string;
  total: number;
  startsAt: string;
  endsAt: string;
  holdSeconds: number;
  maxPerReservation: number;
  amount: number;
  currency: string;
};

/** @throws {Error} that says what is wrong with each of them */
function checkedSettings(saleId: string, given: Record<keyof SaleSettings, unknown>): SaleSettings {
  const id = SaleId.safeParse(saleId);
  if (!id.success) throw new Error(`${saleId} can be no sale’s id: 1 to 64 letters, digits, _ and -`);
  const parsed = SaleSettings.safeParse(given);
  if (!parsed.success) throw new Error(`a sale cannot have these settings:\n${z.prettifyError(parsed.error)}`);
  const wrong = wrongTimes(parsed.data);
  if (wrong !== undefined) throw new Error(wrong);
  return parsed.data;
}

export function saleCreateCommand(saleId: string, options: SaleOptions): Promise<number> {
  return withStores(async ({ stores }) => {
    const { amount, currency, ...rest } = options;
    const { sale, created } = await putSale(
      stores,
      saleId,
      checkedSettings(saleId, { ...rest, price: { amount, currency } }),
    );
    process.stdout.write(created ? `created ${saleId}\n` : `changed ${saleId}\n`);
    print(sale);
    return 0;
  });
}

export function saleListCommand(): Promise<number> {
  return withStores(async ({ stores }) => {
    for (const sale of await listSales(stores.pool)) {
      process.stdout.write(`${sale.saleId}\t${phase(sale, Date.now())}\t${sale.total}\t${sale.name}\n`);
    }
    return 0;
  });
}

export function saleShowCommand(saleId: string): Promise<number> {
  return withStores(async ({ stores }) => {
    const sale = await getSale(stores.pool, saleId);
    if (!sale) throw new Error(`there is no sale ${saleId}`);
    print({
      ...sale,
      ledger: await ledgerFigures(stores.pool, saleId),
      gate: (await stores.gate.figures(saleId)) ?? 'not loaded',
    });
    return 0;
  });
}

export function saleStateCommand(saleId: string, state: 'open' | 'paused' | 'ended'): Promise<number> {
  return withStores(async ({ stores }) => {
    print(await setState(stores, saleId, state));
    return 0;
  });
}

export function saleResizeCommand(saleId: string, total: number): Promise<number> {
  const checked = SaleSettings.shape.total.safeParse(total);
  if (!checked.success) throw new Error(`a total of ${total} cannot be: ${checked.error.issues[0]?.message ?? ''}`);
  return withStores(async ({ stores }) => {
    print(await resizeSale(stores, saleId, total));
    return 0;
  });
}

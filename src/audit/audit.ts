/**
 * The audit: an outside check that trusts nobody's own word. It imports nothing of the product, reads both stores,
 * recomputes from the rows what must be true, and compares. It changes nothing in either store.
 *
 * Cost: each look reads the ledger in one snapshot (each check scans the tables that it needs, once) and the gate page by
 * page. Memory is bounded by the largest sale: its holds, some 300 bytes each, and what was found. Measured with a
 * million holds and orders in one sale, on two cores that Postgres and Redis shared: 33 s a look, 400 MB.
 */
import { checkClosedGate, checkGate, checkStrayGates } from './gate-checks.ts';
import { Gate, type GateHead } from './gate.ts';
import { closedSaleCheck, ledgerChecks, unopenedSaleCheck } from './ledger-checks.ts';
import { type LedgerArgs, type SaleRow, type Snapshot, withSnapshot } from './ledger.ts';
import type { RedisPlace } from './redis.ts';
import { moneyChecks, strayOrderCheck } from './money-checks.ts';
import { pageChecks } from './page-checks.ts';
import {
  type AuditReport,
  makeReport,
  type Result,
  type SaleFigures,
  type Unjudged,
  withUnjudged,
  writeReport,
} from './report.ts';
import { type Look, lookUntilSettled } from './settle.ts';
import { reasonOf, StoreAway } from './stores.ts';
import { announcedCheck, servedCheck } from './webhook-checks.ts';

export { exitCodeOf, type AuditReport } from './report.ts';

export type AuditOptions = RedisPlace & {
  databaseUrl: string;
  /** Only this sale; payments and refunds then of its orders only. Default: all sales. */
  saleId?: string;
  /** Where the report goes as JSON. Default: nowhere. */
  reportFile?: string;
  /** How long a mismatch must last to count, for a system at work. Default 0: it is quiet. */
  settleSeconds?: number;
  /** After how long the keeper sends a marked hold again (UNQUEUED_GRACE_MS). Default 5,000. */
  unqueuedGraceMs?: number;
  /** After how long the keeper refunds a payment that nobody claims (PARKED_GRACE_MS). Default 900,000. */
  parkedGraceMs?: number;
  /** How old a hold without an order may be. Default: {@link GRACES} times `unqueuedGraceMs`. */
  graceMs?: number;
  /** How late the keeper may be with what is due: expiring, refunding, settling. Default 300,000. */
  overdueMs?: number;
  /** How long a store may take for one answer. Default 30,000. */
  timeoutMs?: number;
  /** How many findings of each check the report tells; it counts them all. Default 5. */
  examples?: number;
};

/** A hold that is sent again once per grace, and then has to pass the queue, has its order within a dozen of them. */
export const GRACES = 12;

/** The part that belongs to no sale. */
const WHOLE = 'payments and refunds';

/** There is no sale to audit: waiting for one would be another audit. */
class NoSale extends Error {}

type Numbers = Omit<AuditOptions, keyof RedisPlace | 'databaseUrl' | 'saleId' | 'reportFile'>;
type Settled = Required<Numbers> & RedisPlace & { databaseUrl: string; saleId: string | undefined };

/**
 * Audits both stores and writes the report if a file is named. Never throws: what kept it from judging, in the stores, in
 * the file system or in itself, is in `unjudged`, with the verdict `unjudged`, whatever else was found.
 * @param log is told the progress, line by line
 */
export async function runAudit(options: AuditOptions, log: (line: string) => void): Promise<AuditReport> {
  const settled = withDefaults(options);
  let report: AuditReport;
  try {
    const looks = await lookUntilSettled((parts) => lookOnce(settled, parts), settled.settleSeconds * 1000, log);
    report = makeReport(
      looks.flatMap(({ figures }) => figures),
      looks.flatMap(({ results }) => results),
      looks.flatMap(({ unjudged }) => unjudged),
      settled.examples,
    );
  } catch (error) {
    report = makeReport([], [], [reasonToStop(error, options.saleId, log)], settled.examples);
  }
  if (options.reportFile === undefined) return report;
  try {
    await writeReport(options.reportFile, report);
    return report;
  } catch (error) {
    return withUnjudged(report, {
      what: `the report file ${options.reportFile}`,
      why: `not written: ${reasonOf(error)}`,
    });
  }
}

function reasonToStop(error: unknown, saleId: string | undefined, log: (line: string) => void): Unjudged {
  const why = reasonOf(error);
  if (error instanceof NoSale) return { what: `sale ${saleId ?? '(any)'}`, why };
  if (error instanceof StoreAway) return { what: 'the ledger', why };
  log(error instanceof Error ? (error.stack ?? why) : why);
  return { what: 'anything: the audit itself failed', why };
}

function withDefaults(options: AuditOptions): Settled {
  const { unqueuedGraceMs = 5000 } = options;
  return {
    settleSeconds: 0,
    parkedGraceMs: 900_000,
    graceMs: GRACES * unqueuedGraceMs,
    overdueMs: 300_000,
    timeoutMs: 30_000,
    examples: 5,
    ...options,
    unqueuedGraceMs,
    saleId: options.saleId,
  };
}

/** One look at the parts asked for. A gate out of reach leaves the ledger's checks; without the ledger there is nothing. */
async function lookOnce(options: Settled, parts: Set<string> | undefined): Promise<Map<string, Look>> {
  return withSnapshot(options.databaseUrl, options.timeoutMs, async (ledger) => {
    const looks = new Map<string, Look>();
    const sales = await ledger.sales(options.saleId);
    if (sales.length === 0) {
      throw new NoSale(
        options.saleId === undefined
          ? 'the ledger has no sale, so there is nothing to check'
          : 'the ledger has no such sale',
      );
    }
    const gate = new Gate(options, options.timeoutMs);
    try {
      const away = await reasonAway(gate);
      if (!parts || parts.has(WHOLE)) looks.set(WHOLE, await lookAtWhole(options, ledger, gate, away, sales));
      for (const sale of sales) {
        if (!parts || parts.has(sale.saleId))
          looks.set(sale.saleId, await lookAtSale(options, ledger, gate, away, sale));
      }
    } finally {
      gate.close();
    }
    return looks;
  });
}

/** Why the gate cannot be reached; undefined when it can. */
async function reasonAway(gate: Gate): Promise<string | undefined> {
  try {
    await gate.connect();
    return undefined;
  } catch (error) {
    if (error instanceof StoreAway) return error.message;
    throw error;
  }
}

function ledgerArgs(options: Settled, saleId: string | null): LedgerArgs {
  return { saleId, overdueMs: options.overdueMs, parkedMs: options.parkedGraceMs + options.overdueMs };
}

async function lookAtWhole(
  options: Settled,
  ledger: Snapshot,
  gate: Gate,
  away: string | undefined,
  sales: SaleRow[],
): Promise<Look> {
  const results: Result[] = [];
  const args = ledgerArgs(options, options.saleId ?? null);
  const ofNoSale = options.saleId === undefined ? [strayOrderCheck, servedCheck] : [];
  for (const check of [...moneyChecks, ...pageChecks, ...ofNoSale]) {
    results.push(await ledger.check(check, args));
  }
  if (options.saleId !== undefined) return { figures: [], results, unjudged: [] };
  const unjudged = await orUnjudged('which sales are at the gate', away, async () => {
    results.push(checkStrayGates(await gate.saleIds(), new Set(sales.map(({ saleId }) => saleId))));
    return [];
  });
  return { figures: [], results, unjudged };
}

async function lookAtSale(
  options: Settled,
  ledger: Snapshot,
  gate: Gate,
  away: string | undefined,
  sale: SaleRow,
): Promise<Look> {
  const { saleId, state, total, sold, orders } = sale;
  const figures: SaleFigures = {
    saleId,
    state,
    gate: 'unknown',
    total,
    sold,
    orders,
    stock: null,
    held: null,
    forfeited: null,
  };
  const results: Result[] = [];
  const args = ledgerArgs(options, saleId);
  for (const check of [...ledgerChecks, announcedCheck]) results.push(await ledger.check(check, args));
  if (state === 'closed') results.push(await ledger.check(closedSaleCheck, args));

  const unjudged = await orUnjudged(`the gate of sale ${saleId}`, away, async () => {
    const head = await gate.head(saleId);
    Object.assign(figures, gateFigures(sale, head));
    if (state === 'closed') {
      results.push(checkClosedGate(saleId, head));
      return [];
    }
    if (figures.gate === 'never_opened') {
      results.push(await ledger.check(unopenedSaleCheck, args));
      return [];
    }
    if (head.presence !== 'loaded') return [{ what: `the gate of sale ${saleId}`, why: WHY_ABSENT[head.presence] }];
    const judged = await checkGate(sale, await gate.read(saleId), ledger, options.graceMs);
    results.push(...judged.results);
    return judged.unjudged;
  });
  return { figures: [figures], results, unjudged };
}

const WHY_ABSENT = {
  loading: 'it is being loaded from the ledger: look again when it is open, or give it time with --settle',
  not_loaded: 'it is not loaded, though the sale was opened: Redis lost it; rebuild it with `flashgate rebuild --sale`',
} as const;

function gateFigures(sale: SaleRow, head: GateHead): Partial<SaleFigures> {
  if (sale.state === 'closed') return { gate: 'closed' };
  if (head.presence !== 'loaded') return { gate: sale.opened ? head.presence : 'never_opened' };
  const { held, forfeited } = head.fields;
  return { gate: 'loaded', stock: Number(head.stock), held: Number(held), forfeited: Number(forfeited) };
}

/** Does what needs the gate; says that it could not be judged when the gate is away, before or in the midst of it. */
async function orUnjudged(
  what: string,
  away: string | undefined,
  work: () => Promise<Unjudged[]>,
): Promise<Unjudged[]> {
  if (away !== undefined) return [{ what, why: away }];
  try {
    return await work();
  } catch (error) {
    if (error instanceof StoreAway) return [{ what, why: error.message }];
    throw error;
  }
}

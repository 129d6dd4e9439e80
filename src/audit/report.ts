/** What an audit says: the report, its verdict, its exit code, and the file it is written to. */
import { randomUUID } from 'node:crypto';
import { open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** One thing that is not as it must be. The same check and the same subject, seen again, are the same mismatch. */
export type Finding = { subject: string; found: string };

/** A check that was carried out. `looked` says at how many things; a check of the whole audit has no `saleId`. */
export type Result = { name: string; saleId?: string; looked: number; findings: Finding[] };

/** Something that could not be judged, and why. */
export type Unjudged = { what: string; why: string };

export type Verdict = 'holds' | 'broken' | 'unjudged';

/** What the two stores have of a sale. Units, but `orders` counts orders by status. The gate's are null if it has none. */
export type SaleFigures = {
  saleId: string;
  state: string;
  gate: 'loaded' | 'loading' | 'not_loaded' | 'never_opened' | 'closed' | 'unknown';
  total: number;
  sold: number;
  orders: Record<string, number>;
  stock: number | null;
  held: number | null;
  forfeited: number | null;
};

export type AuditReport = {
  verdict: Verdict;
  /** When the verdict was reached, RFC 3339. */
  at: string;
  sales: SaleFigures[];
  checks: { name: string; saleId?: string; looked: number; broken: number; examples: Finding[] }[];
  unjudged: Unjudged[];
};

/**
 * Makes the report. The order of verdicts is fixed: `unjudged` before `broken` before `holds`. Something that could not
 * be judged may hide anything, so it outranks what was found; what was found is in the report all the same. An audit
 * without a single check has judged nothing.
 * @param examples how many findings of each check are told; all are counted
 */
export function makeReport(
  sales: SaleFigures[],
  results: Result[],
  unjudged: Unjudged[],
  examples: number,
): AuditReport {
  const reasons = [...unjudged];
  if (results.length === 0 && reasons.length === 0) {
    reasons.push({ what: 'the audit', why: 'no check was carried out, so nothing is known' });
  }
  const checks = results.map(({ findings, ...check }) => ({
    ...check,
    broken: findings.length,
    examples: findings.slice(0, examples),
  }));
  const broken = checks.some((check) => check.broken > 0);
  const verdict = reasons.length > 0 ? 'unjudged' : broken ? 'broken' : 'holds';
  return { verdict, at: new Date().toISOString(), sales, checks, unjudged: reasons };
}

/** The same report, with one more thing that could not be judged. */
export function withUnjudged(report: AuditReport, reason: Unjudged): AuditReport {
  return { ...report, verdict: 'unjudged', unjudged: [...report.unjudged, reason] };
}

/** 0: all checks hold. 2: at least one does not. 3: could not judge. */
export function exitCodeOf(report: AuditReport): 0 | 2 | 3 {
  return ({ holds: 0, broken: 2, unjudged: 3 } as const)[report.verdict];
}

/**
 * Writes the report as JSON, so that a reader sees the earlier file or this one whole, never a part.
 * @throws {Error} of the file system; the temporary file beside it is gone then
 */
export async function writeReport(file: string, report: AuditReport): Promise<void> {
  const draft = join(dirname(file), `.${randomUUID()}.tmp`);
  try {
    const handle = await open(draft, 'wx');
    try {
      await handle.writeFile(`${JSON.stringify(report, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await unlink(draft).catch((gone: unknown) => {
      const code = gone instanceof Error && 'code' in gone ? gone.code : undefined;
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw gone;
    });
    throw error;
  }
}

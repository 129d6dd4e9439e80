/** The command line's `audit`: settings from the environment, the report as a table, the verdict as an exit code. */
import { type AuditOptions, GRACES, runAudit } from './audit.ts';
import { type AuditReport, exitCodeOf, makeReport, withUnjudged, writeReport } from './report.ts';
import { redisPlaceOf } from './redis.ts';
import { reasonOf } from './stores.ts';
import { formatReport } from './table.ts';

/** As the command line gives them. `settle` is in seconds. */
export type AuditCommandOptions = { sale?: string; report?: string; settle?: string };

type NumberOption = 'graceMs' | 'overdueMs' | 'timeoutMs' | 'examples' | 'unqueuedGraceMs' | 'parkedGraceMs';
type Whole = { option: NumberOption; min: number; max: number; says: string };

const DAY_MS = 86_400_000;

/** The audit's own settings. Others that begin with AUDIT_ are refused: a misspelt one must not be overlooked. */
export const auditSettings: Record<string, Whole> = {
  AUDIT_GRACE_MS: {
    option: 'graceMs',
    min: 0,
    max: DAY_MS,
    says: `how old a hold without an order may be (default: ${GRACES} times UNQUEUED_GRACE_MS)`,
  },
  AUDIT_OVERDUE_MS: {
    option: 'overdueMs',
    min: 0,
    max: 30 * DAY_MS,
    says: 'how late the keeper may be with what is due (default: 300000)',
  },
  AUDIT_TIMEOUT_MS: {
    option: 'timeoutMs',
    min: 1,
    max: DAY_MS,
    says: 'how long a store may take for one answer (default: 30000)',
  },
  AUDIT_EXAMPLES: {
    option: 'examples',
    min: 0,
    max: 1000,
    says: 'how many findings of each check are told (default: 5)',
  },
};

/** Settings of the product that the audit has to know. */
const sharedSettings: Record<string, Whole> = {
  UNQUEUED_GRACE_MS: {
    option: 'unqueuedGraceMs',
    min: 1,
    max: DAY_MS,
    says: 'after how long a marked hold is sent again',
  },
  PARKED_GRACE_MS: {
    option: 'parkedGraceMs',
    min: 1,
    max: 30 * DAY_MS,
    says: 'after how long an unclaimed payment is refunded',
  },
};

/**
 * Runs the audit and prints what it found. The verdict's order is fixed: could not judge, before broken, before good.
 * @param print is given whole lines
 * @returns 0 all checks hold; 2 at least one does not; 3 could not judge: a store out of reach, a gate that is not
 *   loaded, a setting unknown or wrong, no such sale, nothing to check, a report that could not be written
 */
export async function auditCommand(
  options: AuditCommandOptions,
  env: NodeJS.ProcessEnv,
  print: (line: string) => void = (line) => process.stdout.write(`${line}\n`),
): Promise<0 | 2 | 3> {
  const read = readOptions(options, env);
  const report = 'wrong' in read ? await refuse(read.wrong, options.report) : await runAudit(read, print);
  for (const line of formatReport(report)) print(line);
  if (options.report !== undefined) print(`Report: ${options.report}`);
  return exitCodeOf(report);
}

/** A report that says what is wrong with the settings, in place of an older one that might look like an answer. */
async function refuse(wrong: string[], reportFile: string | undefined): Promise<AuditReport> {
  const report = makeReport(
    [],
    [],
    wrong.map((why) => ({ what: 'a setting', why })),
    0,
  );
  if (reportFile === undefined) return report;
  try {
    await writeReport(reportFile, report);
    return report;
  } catch (error) {
    return withUnjudged(report, { what: `the report file ${reportFile}`, why: `not written: ${reasonOf(error)}` });
  }
}

/** @returns what to run the audit with, or everything that is wrong */
function readOptions(options: AuditCommandOptions, env: NodeJS.ProcessEnv): AuditOptions | { wrong: string[] } {
  const wrong: string[] = [];
  const address = (name: string, protocol: RegExp) => {
    const value = env[name] ?? '';
    if (value === '') wrong.push(`${name} is not set: the audit has to know where to look`);
    else if (!URL.canParse(value) || !protocol.test(new URL(value).protocol))
      wrong.push(`${name} is no address of such a store`);
    return value;
  };
  const redisPlace = () => {
    try {
      return redisPlaceOf(env);
    } catch (error) {
      wrong.push(reasonOf(error));
      return { redisUrl: '' };
    }
  };
  const numbers: Partial<Record<NumberOption, number>> = {};
  for (const [name, { option, min, max, says }] of Object.entries({ ...auditSettings, ...sharedSettings })) {
    const text = env[name] ?? '';
    if (text === '') continue;
    if (/^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max) numbers[option] = Number(text);
    else wrong.push(`${name}=${text} is wrong: ${says}, a whole number from ${min} to ${max}`);
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith('AUDIT_') && !Object.hasOwn(auditSettings, name)) {
      wrong.push(`${name} is unknown; there are ${Object.keys(auditSettings).join(', ')}`);
    }
  }
  const { sale, report, settle = '0' } = options;
  if (sale !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(sale)) wrong.push(`--sale ${sale} can be no sale’s id`);
  if (report === '') wrong.push('--report names no file');
  if (!/^\d{1,5}(\.\d+)?$/.test(settle)) wrong.push(`--settle ${settle} is wrong: seconds, from 0 to 99999`);
  const read = {
    databaseUrl: address('DATABASE_URL', /^postgres(ql)?:$/),
    ...redisPlace(),
    settleSeconds: Number(settle),
    ...numbers,
    ...(sale === undefined ? {} : { saleId: sale }),
    ...(report === undefined ? {} : { reportFile: report }),
  };
  return wrong.length > 0 ? { wrong } : read;
}

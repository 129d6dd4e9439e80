/** The report for a person, at most 100 columns wide. */
import { closedGateCheckNames, gateCheckNames, strayGateCheckNames } from './gate-checks.ts';
import { closedSaleCheck, ledgerChecks, unopenedSaleCheck } from './ledger-checks.ts';
import { moneyChecks, strayOrderCheck } from './money-checks.ts';
import { pageChecks } from './page-checks.ts';
import type { AuditReport, SaleFigures } from './report.ts';
import { announcedCheck, servedCheck } from './webhook-checks.ts';

const WIDTH = 100;

/** Every check there is: its name and the rule that it checks, in words. */
export const rules: ReadonlyMap<string, string> = new Map([
  ...[...ledgerChecks, closedSaleCheck, unopenedSaleCheck].map(({ name, says }) => [name, says] as const),
  ...Object.entries({ ...gateCheckNames, ...closedGateCheckNames }),
  ...[...moneyChecks, strayOrderCheck, ...pageChecks].map(({ name, says }) => [name, says] as const),
  ...[announcedCheck, servedCheck].map(({ name, says }) => [name, says] as const),
  ...Object.entries(strayGateCheckNames),
]);

/** @returns the lines: the sales, the checks counted, what is broken and what could not be judged, the verdict */
export function formatReport(report: AuditReport): string[] {
  return [
    ...salesTable(report.sales),
    ...checksTable(report.checks),
    ...report.checks.flatMap(describeBroken),
    ...report.unjudged.flatMap(({ what, why }) => ['', ...wrap(`COULD NOT JUDGE ${what}: ${why}`, '  ')]),
    '',
    verdictLine(report),
  ];
}

function salesTable(sales: SaleFigures[]): string[] {
  if (sales.length === 0) return [];
  const cell = (value: number | null) => (value === null ? '-' : String(value)).padStart(10);
  const id = (text: string) => (text.length > 28 ? `${text.slice(0, 27)}…` : text).padEnd(28);
  return [
    `${id('sale')} ${'state'.padEnd(7)} ${'gate'.padEnd(12)}${['total', 'sold', 'stock', 'held', 'forfeited'].map((name) => name.padStart(10)).join('')}`,
    ...sales.map(({ saleId, state, gate, total, sold, stock, held, forfeited }) => {
      return `${id(saleId)} ${state.padEnd(7)} ${gate.padEnd(12)}${[total, sold, stock, held, forfeited].map(cell).join('')}`;
    }),
    '',
  ];
}

/** One line for each name, over all sales. */
function checksTable(checks: AuditReport['checks']): string[] {
  if (checks.length === 0) return [];
  const lines: string[] = [];
  for (const name of rules.keys()) {
    const same = checks.filter((check) => check.name === name);
    if (same.length === 0) continue;
    const looked = same.reduce((sum, check) => sum + check.looked, 0);
    const broken = same.reduce((sum, check) => sum + check.broken, 0);
    lines.push(
      `${name.padEnd(36)}${String(looked).padStart(12)}${String(broken).padStart(12)}${broken > 0 ? '  BROKEN' : ''}`,
    );
  }
  return [`${'check'.padEnd(36)}${'looked at'.padStart(12)}${'broken'.padStart(12)}`, ...lines];
}

function describeBroken({ name, saleId, broken, examples }: AuditReport['checks'][number]): string[] {
  if (broken === 0) return [];
  const where = saleId === undefined ? '' : ` in sale ${saleId}`;
  const more = broken - examples.length;
  return [
    '',
    ...wrap(`BROKEN ${name}${where}: the rule is that ${rules.get(name) ?? 'it holds'}.`, '  '),
    ...examples.flatMap(({ subject, found }) => wrap(`  ${subject}: ${found}`, '    ')),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function verdictLine({ verdict, checks, unjudged }: AuditReport): string {
  const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`;
  const broken = checks.filter((check) => check.broken > 0).length;
  switch (verdict) {
    case 'holds':
      return `Verdict: all ${count(checks.length, 'check')} hold.`;
    case 'broken':
      return `Verdict: BROKEN: ${broken} of ${count(checks.length, 'check')} do not hold.`;
    case 'unjudged':
      return `Verdict: COULD NOT JUDGE ${count(unjudged.length, 'thing')}; of ${count(checks.length, 'check')}, ${broken} do not hold.`;
  }
}

/** Breaks text between words; a word that is too long stays whole. */
function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  const start = /^ */.exec(text)?.[0] ?? '';
  let line = start;
  for (const word of text.trim().split(' ')) {
    if (line.trim() !== '' && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
    }
    line += line.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, line];
}

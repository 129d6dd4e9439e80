/** What a run prints: faults survived by kind, answers by kind, the checks, and what they found. Pure: no I/O. */
import Table from 'cli-table3';
import { KINDS, type Kind } from './script.ts';
import type { Struck } from './faults.ts';
import { holds, type Check } from './verdict.ts';

/** Findings of one check that are printed; the rest are counted. */
const SHOWN = 6;

export function reportFaults(struck: Struck[], survived: boolean): string {
  const rows = (Object.keys(KINDS) as Kind[]).flatMap((kind) => {
    const count = struck.filter((fault) => fault.kind === kind).length;
    return count > 0 ? [[kind, KINDS[kind], String(count)]] : [];
  });
  return table(['fault', 'what happens', survived ? 'survived' : 'struck'], rows);
}

export function reportAnswers(answers: Map<string, number>[]): string {
  const counts = new Map<string, number>();
  for (const second of answers) {
    for (const [kind, count] of second) counts.set(kind, (counts.get(kind) ?? 0) + count);
  }
  const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([kind, count]) => `${kind} ${count}`);
  return `answers: ${rows.join(', ')}`;
}

export function reportChecks(checks: Check[]): string {
  const rows = checks.map(({ name, says, looked, findings, excused }) => [
    findings.length > 0 ? 'BROKEN' : looked === 0 ? 'EMPTY' : 'holds',
    name,
    says,
    String(looked),
    String(findings.length),
    String(excused.length),
  ]);
  const lines = [table(['', 'check', 'rule', 'looked at', 'found', 'excused'], rows)];
  for (const { name, looked, findings, excused } of checks) {
    if (looked === 0) lines.push(`${name}: there was nothing to look at, so nothing is shown by it`);
    for (const finding of findings.slice(0, SHOWN)) lines.push(`${name}: ${finding}`);
    if (findings.length > SHOWN) lines.push(`${name}: and ${findings.length - SHOWN} more`);
    for (const each of excused.slice(0, 2)) lines.push(`${name}, excused: ${each}`);
  }
  return lines.join('\n');
}

/** One line that says how a run went, for whoever runs many. */
export function summary(seed: number, struck: Struck[], checks: Check[]): string {
  const broken = checks.filter(({ findings, looked }) => findings.length > 0 || looked === 0).map(({ name }) => name);
  const told = checks.find(({ name }) => name === 'told_has_order');
  const verdict = holds(checks) ? 'green' : `RED: ${broken.join(', ')}`;
  const excused = checks.filter((check) => check.excused.length > 0);
  const excuses = excused.map((check) => `${check.name} ${check.excused.length}`).join(', ') || 'nothing';
  return `seed ${seed}: ${verdict}; ${struck.length} faults, ${told?.looked ?? 0} winners; excused: ${excuses}`;
}

function table(head: string[], rows: string[][]): string {
  const grid = new Table({ head, style: { head: [], border: [], compact: true } });
  grid.push(...rows);
  return grid.toString();
}

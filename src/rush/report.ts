/** What a rush found: as JSON for machines, as tables for people. */
import { rename, writeFile } from 'node:fs/promises';
import Table from 'cli-table3';
import type { AuditReport } from '../audit/report.ts';
import { ordersUnheardOf, type Check, type Evidence } from './ledger-compare.ts';
import { machine } from './machine.ts';
import type { RushSettings } from './options.ts';
import type { Course as OverTime, KindLine, Spread, Tally } from './tally.ts';

/** Latencies and lags in milliseconds, money in minor units. */
export type RushReport = {
  startedAt: string;
  saleId: string;
  units: number;
  settings: RushSettings;
  requests: number;
  /** Answers in the rush proper, and from its first press until its last reply; those who come back later are not in it. */
  inRush: number;
  seconds: number;
  perSecond: number;
  busiestSecond: number;
  /** The rush proper over time. */
  course: OverTime;
  answers: KindLine[];
  lag: { driver: Spread; send: Spread };
  /** Part of its time (0 to 1) that the driver's thread was at work, in the half second in which it was most. */
  driverBusy: number;
  driverFellBehind: boolean;
  winners: number;
  /** Orders by status, and quantities in units. */
  orders: Record<string, number>;
  ordersNobodyHeardOf: number;
  unitsLeft: number | null;
  money: { captured: number; refunded: number; refunds: number };
  checks: Check[];
  audit: AuditReport | null;
  /** Of whoever ran the rush: what, value. */
  machine: Record<string, string>;
};

export type Course = {
  startedAt: Date;
  saleId: string;
  units: number;
  settings: RushSettings;
  tally: Tally;
  inRush: number;
  seconds: number;
  over: OverTime;
  winners: number;
};

export function makeReport(course: Course, evidence: Evidence, checks: Check[], audit: AuditReport | null): RushReport {
  const { tally, startedAt, over, ...rest } = course;
  const orders: Record<string, number> = { PENDING_PAYMENT: 0, PAID: 0, EXPIRED: 0, CANCELLED: 0, REJECTED: 0 };
  const added = [...evidence.orders.values()].filter(({ reservationId }) => !evidence.before.has(reservationId));
  for (const { status } of added) orders[status] = (orders[status] ?? 0) + 1;
  const ids = new Set(added.map(({ reservationId }) => reservationId));
  const payments = evidence.payments.filter(({ reservationId }) => ids.has(reservationId));
  return {
    ...rest,
    startedAt: startedAt.toISOString(),
    requests: tally.answered,
    perSecond: Math.round(course.inRush / course.seconds),
    busiestSecond: tally.busiestSecond(),
    course: over,
    answers: tally.lines(),
    lag: tally.lag(),
    driverBusy: tally.driverBusy,
    driverFellBehind: tally.driverFellBehind(),
    orders,
    ordersNobodyHeardOf: ordersUnheardOf(evidence).length,
    unitsLeft: evidence.sale.gate?.stock ?? null,
    money: {
      captured: payments.reduce((all, { captured }) => all + captured, 0),
      refunded: payments.reduce((all, { refunded }) => all + refunded, 0),
      refunds: payments.filter(({ refunded }) => refunded > 0).length,
    },
    checks,
    audit,
    machine: machine(),
  };
}

/** Whole or not at all: a reader never sees half a file. @throws {Error} of the file system */
export async function writeReport(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}.tmp`;
  await writeFile(draft, text);
  await rename(draft, file);
}

const SHOWN_FAILURES = 5;

/** The tables and sentences that a person reads at the end. */
export function renderReport(report: RushReport): string {
  const parts = [answersTable(report), resultTable(report), checksTable(report), ...failuresInWords(report)];
  if (report.driverFellBehind) {
    parts.push(fellBehindInWords(report));
  }
  return parts.join('\n');
}

export const fellBehindInWords = ({ driverBusy, lag }: RushReport): string =>
  `The driver itself was at its limit (busy ${percent(driverBusy)}, p99 ${lag.driver.p99} ms behind its ` +
  'schedule): part of the latencies above is its own. Use fewer buyers, a longer --over, or another machine for the driver.';

const style = { head: [], border: [], compact: true };
const percent = (part: number) => `${Math.round(part * 100)} %`;
const count = (n: number) => n.toLocaleString('en-US');

type Row = (string | number)[];

/** Answer, count, p50, p99, max; then the driver's own lateness. */
export function answerRows({ answers, lag }: RushReport): Row[] {
  const row = (name: string, times: Spread, n = ''): Row => [name, n, times.p50, times.p99, times.max];
  return [
    ...answers.map((line) => row(line.is === 'unexpected' ? `! ${line.kind}` : line.kind, line, count(line.count))),
    row('lag: due → handed over by the driver', lag.driver),
    row('lag: due → written to a connection', lag.send),
  ];
}

function answersTable(report: RushReport): string {
  const table = new Table({
    head: ['answer', 'count', 'p50 ms', 'p99 ms', 'max ms'],
    colAligns: ['left', 'right', 'right', 'right', 'right'],
    style,
  });
  table.push(...answerRows(report));
  return `Latencies are counted from when each request was due.\n${table.toString()}`;
}

/** What, value. */
export function resultRows(report: RushReport): Row[] {
  const { orders, money, audit } = report;
  const rows: Record<string, string | number> = {
    'requests answered': `${count(report.inRush)} in ${report.seconds.toFixed(1)} s = ${count(report.perSecond)}/s`,
    'answers in the busiest second': count(report.busiestSecond),
    'driver busy, at most': percent(report.driverBusy),
    'winners (reservations told)': report.winners,
    'paid orders': orders.PAID ?? 0,
    'expired orders': orders.EXPIRED ?? 0,
    'cancelled orders': orders.CANCELLED ?? 0,
    'rejected orders': orders.REJECTED ?? 0,
    'orders whose every reply was lost': report.ordersNobodyHeardOf,
    'payments refunded': money.refunds,
    'captured − refunded, minor units': `${count(money.captured)} − ${count(money.refunded)}`,
    'units left at the gate': report.unitsLeft ?? 'unknown',
    audit: audit ? auditInWords(audit) : 'left out (--no-audit)',
  };
  return Object.entries(rows);
}

function resultTable(report: RushReport): string {
  const table = new Table({ style, colAligns: ['left', 'right'] });
  table.push(...resultRows(report));
  return table.toString();
}

function auditInWords({ verdict, checks, unjudged }: AuditReport): string {
  const broken = checks.filter((check) => check.broken > 0).length;
  const figures = [`${checks.length} checks`, `${broken} broken`, `${unjudged.length} not judged`];
  return `${verdict} (${figures.join(', ')})`;
}

/** Claim, how many were looked at, whether it holds. */
export function checkRows({ checks }: RushReport): Row[] {
  return checks.map(({ claim, examined, failures }) => {
    return [claim, count(examined), failures.length === 0 ? 'holds' : `BROKEN ${count(failures.length)}×`];
  });
}

function checksTable(report: RushReport): string {
  const table = new Table({
    head: ['told against ledger', 'looked at', ''],
    colAligns: ['left', 'right', 'left'],
    style,
  });
  table.push(...checkRows(report));
  return table.toString();
}

export function failuresInWords({ checks, audit }: RushReport): string[] {
  const ours = checks.flatMap(({ name, failures }) => listed(name, failures));
  const findings = (audit?.checks ?? []).flatMap(({ name, saleId, broken, examples }) => {
    const words = examples.map(({ subject, found }) => `${subject}: ${found}`);
    return broken === 0 ? [] : listed(`audit ${name}${saleId ? ` of ${saleId}` : ''}`, words, broken);
  });
  const unjudged = (audit?.unjudged ?? []).map(({ what, why }) => `NOT JUDGED audit: ${what}: ${why}`);
  return [...ours, ...findings, ...unjudged];
}

function listed(name: string, failures: string[], total = failures.length): string[] {
  const shown = failures.slice(0, SHOWN_FAILURES).map((words) => `BROKEN ${name}: ${words}`);
  return total > shown.length ? [...shown, `BROKEN ${name}: … and ${total - shown.length} more`] : shown;
}

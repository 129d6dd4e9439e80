/**
 * The script of faults of one run: which thing breaks when, how and for how long. Drawn from the seed alone, before
 * anything is started. Pure: no I/O.
 */
import type { Random } from './random.ts';

export const MEMBERS = ['api-1', 'api-2', 'worker-1', 'worker-2', 'keeper-1', 'keeper-2'] as const;
export type MemberName = (typeof MEMBERS)[number];
export const STORES = ['redis', 'postgres', 'queue'] as const;
export type StoreName = (typeof STORES)[number];

export const KINDS = {
  'kill-api': 'SIGKILL, started again',
  'kill-worker': 'SIGKILL, started again',
  'kill-keeper': 'SIGKILL, started again',
  'restart-api': 'SIGTERM, started again',
  'restart-worker': 'SIGTERM, started again',
  'restart-keeper': 'SIGTERM, started again',
  'freeze-api': 'SIGSTOP, later SIGCONT',
  'freeze-worker': 'SIGSTOP, later SIGCONT',
  'freeze-keeper': 'SIGSTOP, later SIGCONT; often past its lease',
  'cut-redis': 'bytes between one process and Redis are swallowed, connections stay open',
  'cut-postgres': 'bytes between one process and Postgres are swallowed, connections stay open',
  'cut-queue': 'bytes between one process and the queue are swallowed, connections stay open',
  'slow-redis': 'every byte between one process and Redis takes longer',
  'slow-postgres': 'every byte between one process and Postgres takes longer',
  'redis-restart': 'Redis ends and comes back with all that it had',
  'redis-freeze': 'SIGSTOP, later SIGCONT',
  'redis-older': 'Redis is killed and comes back without its last writes',
  'redis-empty': 'Redis comes back with nothing',
  'queue-empty': 'the queue ends and comes back without its messages',
  'queue-freeze': 'SIGSTOP, later SIGCONT',
  'postgres-restart': 'fast shutdown: sessions are cut off; then started again',
  'postgres-kill': 'SIGKILL of the postmaster; then started again, with recovery',
  'provider-refuses': 'refunds are made, and answered 500',
} as const;
export type Kind = keyof typeof KINDS;

/** After these the gate may have forgotten a promise. */
export const LOSES_GATE: readonly Kind[] = ['redis-older', 'redis-empty'];

export type Fault = {
  n: number;
  kind: Kind;
  /** From the start of the load. */
  atMs: number;
  forMs: number;
  /** What breaks: a process, a server, or a process' way to a store (`worker-1 redis`). */
  target: string;
  /** How, where there is a choice. */
  how: string;
};

/** What the merchant does in the middle of it, to the sale that is there for it. */
export type Change = { atMs: number; does: 'pause' | 'resume' | 'resize' | 'reprice'; value: number };

export type Script = { faults: Fault[]; changes: Change[]; losesGate: boolean };

/** A preference: faults that come again and again in this order, `afterMs` after the one before, instead of the deck. */
export type Refrain = { kind: Kind; target?: string; how?: string; forMs?: number; afterMs: number }[];

export type ScriptOptions = {
  forMs: number;
  /** Whether the gate may lose what it promised; undefined: drawn. */
  losesGate?: boolean | undefined;
  refrain?: Refrain | undefined;
};

/** Time for the load to come up before the first fault. */
const QUIET_MS = 3000;
/** On average, between two faults that are not drawn together. */
const MEAN_GAP_MS = 2300;
/** Share of faults that strike while the one before is still fresh: what breaks in practice breaks together. */
const TOGETHER = 0.35;
/** Share of runs in which the gate keeps its word, so that no winner may be refused at all. */
const GATE_KEEPS = 0.4;

export function drawScript(random: Random, options: ScriptOptions): Script {
  const losesGate = options.losesGate ?? !random.fork('gate').chance(GATE_KEEPS);
  const draw = random.fork('faults');
  const faults = options.refrain ? refrain(draw, options.refrain, options.forMs) : deck(draw, losesGate, options.forMs);
  return { faults, changes: drawChanges(random.fork('changes'), options.forMs), losesGate };
}

/** Deals all kinds in random order, again and again, so that none is missing in a run that is long enough. */
function deck(random: Random, losesGate: boolean, forMs: number): Fault[] {
  const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => losesGate || !LOSES_GATE.includes(kind));
  const faults: Fault[] = [];
  let left: Kind[] = [];
  for (let atMs = QUIET_MS; atMs < forMs - 1000;) {
    if (left.length === 0) left = random.shuffled(kinds);
    const kind = left.pop() as Kind;
    const fault = { n: faults.length + 1, kind, atMs: Math.round(atMs), ...detail(random, kind) };
    fault.forMs = Math.round(Math.min(fault.forMs, forMs - atMs));
    if (free(faults, fault)) faults.push(fault);
    atMs += random.chance(TOGETHER) ? random.between(0, 400) : 300 + random.gap(MEAN_GAP_MS);
  }
  return faults;
}

function refrain(random: Random, steps: Refrain, forMs: number): Fault[] {
  const faults: Fault[] = [];
  for (let atMs = QUIET_MS, n = 0; ; n += 1) {
    const step = steps[n % steps.length] as Refrain[number];
    atMs += step.afterMs * random.between(0.7, 1.3);
    const drawn = detail(random, step.kind);
    const { target = drawn.target, how = drawn.how } = step;
    const wanted = step.forMs === undefined ? drawn.forMs : step.forMs * random.between(0.7, 1.3);
    if (atMs > forMs - 1000) return faults;
    const length = Math.round(Math.min(wanted, forMs - atMs));
    const fault = { n: faults.length + 1, kind: step.kind, atMs: Math.round(atMs), target, how, forMs: length };
    if (free(faults, fault)) faults.push(fault);
  }
}

/** What is broken already is not broken again, and a server that comes back is given a moment. */
function free(faults: Fault[], { atMs, target }: Fault): boolean {
  return faults.every((other) => other.target !== target || other.atMs + other.forMs + 500 < atMs);
}

function detail(random: Random, kind: Kind): Pick<Fault, 'target' | 'forMs' | 'how'> {
  const [what = '', where = ''] = kind.split('-');
  const member = MEMBERS.filter((name) => name.startsWith(`${where}-`));
  switch (what) {
    case 'kill':
      return { target: random.pick(member), forMs: random.between(50, 2500), how: 'SIGKILL' };
    case 'restart':
      return { target: random.pick(member), forMs: random.between(50, 1000), how: 'SIGTERM' };
    case 'freeze':
      return { target: random.pick(member), forMs: random.between(400, 7000), how: 'SIGSTOP' };
    case 'cut':
      return {
        target: `${random.pick(MEMBERS)} ${where}`,
        forMs: random.between(300, 5000),
        how: random.pick(['both ways', 'requests', 'replies']),
      };
    case 'slow':
      return {
        target: `${random.pick(MEMBERS)} ${where}`,
        forMs: random.between(2000, 8000),
        how: `${random.whole(20, 100)} ms`,
      };
    default:
      return serverDetail(random, kind);
  }
}

function serverDetail(random: Random, kind: Kind): Pick<Fault, 'target' | 'forMs' | 'how'> {
  const [target = '', what = ''] = kind.split('-');
  if (what === 'freeze') return { target, forMs: random.between(400, 4000), how: 'SIGSTOP' };
  if (target === 'provider') return { target, forMs: random.between(1000, 4000), how: '500' };
  const downMs = random.between(0, 1500);
  if (kind === 'redis-older') {
    const olderMs = random.whole(300, 3000);
    return { target, forMs: olderMs + downMs, how: `${olderMs} ms older` };
  }
  if (kind === 'redis-empty') return { target, forMs: downMs, how: random.pick(['FLUSHALL', 'SIGKILL']) };
  if (kind === 'redis-restart') return { target, forMs: downMs, how: random.pick(['SIGTERM', 'SIGKILL']) };
  // For Postgres, SIGINT is the fast shutdown. The queue has no clean end: it keeps nothing.
  return { target, forMs: downMs, how: kind === 'postgres-restart' ? 'SIGINT' : 'SIGKILL' };
}

function drawChanges(random: Random, forMs: number): Change[] {
  const changes: Change[] = [];
  for (let atMs = 4000; atMs < forMs - 3000; atMs += random.between(3000, 9000)) {
    const does = random.weighted({ pause: 2, resize: 4, reprice: 1 });
    if (does === 'pause') {
      changes.push({ atMs: Math.round(atMs), does, value: 0 });
      atMs += random.between(500, 3000);
      changes.push({ atMs: Math.round(atMs), does: 'resume', value: 0 });
    } else {
      const value = does === 'resize' ? random.whole(100, 400) : random.whole(100, 900);
      changes.push({ atMs: Math.round(atMs), does, value });
    }
  }
  return changes;
}

/** One line per fault, as it is printed before the run. */
export function describeFault({ n, kind, atMs, forMs, target, how }: Fault): string {
  const at = (atMs / 1000).toFixed(1).padStart(6);
  return `  ${String(n).padStart(3)}  ${at} s  ${kind.padEnd(17)} ${target.padEnd(18)} ${how}, ${(forMs / 1000).toFixed(1)} s`;
}

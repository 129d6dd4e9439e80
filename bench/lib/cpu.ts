/**
 * CPU time of processes, from Linux' /proc: on a machine that is shared, the figure that does not depend on who else is
 * at work. Of a process, all its threads and all its descendants.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';

const NANOSECONDS_PER_MS = 1e6;
let ticksPerSecond: number | undefined;

/** Fields of /proc/PID/stat from the third on; undefined when the process is gone. The second may contain anything. */
function stat(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined; // it ended
    throw error;
  }
}

/** @returns the parent's process id. @throws {Error} when there is no such process */
export function parentOf(pid: number): number {
  const parent = stat(pid)?.[1];
  if (parent === undefined) throw new Error(`there is no process ${pid}`);
  return Number(parent);
}

/** The process and all its descendants. */
export function family(pid: number): number[] {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(stat(Number(name))?.[1] ?? -1);
    parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
  }
  const found = [pid];
  for (let n = 0; n < found.length; n += 1) found.push(...(parents.get(found[n] ?? -1) ?? []));
  return found;
}

/** CPU milliseconds of one process so far, to the nanosecond where the kernel counts them (`schedstat`). */
function own(pid: number): number {
  const tasks = read(`/proc/${pid}/schedstat`) === undefined ? [] : readdirSync(`/proc/${pid}/task`);
  const spent = tasks.map((task) => Number(read(`/proc/${pid}/task/${task}/schedstat`)?.split(' ')[0] ?? 0));
  return spent.reduce((sum, each) => sum + each, 0) / NANOSECONDS_PER_MS;
}

/** CPU milliseconds of children that have ended and were waited for; in the kernel's ticks. */
function ofEndedChildren(pid: number): number {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  const fields = stat(pid);
  return fields === undefined ? 0 : ((Number(fields[13]) + Number(fields[14])) * 1000) / ticksPerSecond;
}

/** CPU milliseconds that a process, its threads and its descendants have used so far. */
export function cpuMs(pid: number): number {
  return family(pid).reduce((sum, each) => sum + own(each) + ofEndedChildren(each), 0);
}

/** Resident memory of a process and its descendants, in bytes. */
export function residentBytes(pid: number): number {
  const kilobytes = family(pid).map((each) => /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${each}/status`) ?? '')?.[1] ?? '0');
  return kilobytes.reduce((sum, each) => sum + Number(each), 0) * 1024;
}

/**
 * Watches several processes. What a child used is counted in nanoseconds while it lives and in the kernel's ticks (10 ms)
 * once it has ended: when one ends meanwhile, up to two ticks of its past are lost, and of a process that did next to
 * nothing less than nothing would be left. That is told as nothing.
 * @returns a function that tells the milliseconds each has used since
 */
export function watch<Name extends string>(pids: Record<Name, number>): () => Record<Name, number> {
  const all = Object.entries(pids) as [Name, number][];
  const before = new Map(all.map(([name, pid]) => [name, cpuMs(pid)]));
  return () =>
    Object.fromEntries(all.map(([name, pid]) => [name, Math.max(0, cpuMs(pid) - (before.get(name) ?? 0))])) as Record<
      Name,
      number
    >;
}

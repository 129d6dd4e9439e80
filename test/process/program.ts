/** The command line as its users start it: a process of its own, with nothing in its environment but what is given. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, expect, vi } from 'vitest';
import { settings } from '../http/api.ts';
import { runtime } from '../support/runtime.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };
export type Program = {
  child: ChildProcess;
  output: () => string;
  ended: Promise<Ended>;
  kill: (s: NodeJS.Signals) => void;
};

const running = new Set<ChildProcess>();
/** With their own processes, which may not notice that the first one is gone. */
const killAll = () => {
  for (const { pid, exitCode, signalCode } of running) {
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
  }
};
afterAll(killAll);
process.once('exit', killAll);

/**
 * Starts `flashgate` with these arguments and this environment.
 * @param output a file that is its standard output, which `output()` then does not have
 */
export function start(args: string[], env: Record<string, string>, output: number | 'pipe' = 'pipe'): Program {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...runtime, ...env },
    stdio: ['ignore', output, 'pipe'],
    detached: true, // the leader of a group, to be killed as one
  });
  running.add(child);
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (more: string) => (text[name] += more));
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal, ...text });
    });
  });
  return { child, output: () => text.stdout + text.stderr, ended, kill: (signal) => child.kill(signal) };
}

/** The ids of the processes that it has started and that are still there, in order. */
export function childrenOf({ child }: Pick<Program, 'child'>): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .filter(Boolean)
    .map(Number)
    .sort((a, b) => a - b);
}

/** Runs a command to its end. */
export function flashgate(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  return start(args, env).ended;
}

/** `serve` with the tests' tokens, once it listens. */
export async function serve(env: Record<string, string>): Promise<Program & { url: string }> {
  const program = start(['serve'], { ...settings, ...env });
  const url = await said(program, /"address":"([^"]+)"/);
  return { ...program, url };
}

/** Waits until the program's output has this, and returns its first group. */
export async function said(program: Program, pattern: RegExp): Promise<string> {
  await vi.waitFor(() => expect(program.output()).toMatch(pattern), { timeout: 40_000, interval: 20 });
  return pattern.exec(program.output())?.[1] ?? '';
}

/** A failure that is meant for a person: the reason, and no stack trace. */
export function expectReason({ code, stdout, stderr }: Ended, reason: string | RegExp, expected = 1): void {
  expect(stderr).toMatch(reason);
  expect(stdout + stderr).not.toMatch(/^\s+at .+[:(]/m);
  expect(code).toBe(expected);
}

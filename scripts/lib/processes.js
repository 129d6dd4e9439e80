// Processes: is one still there, is it really the one we mean, and how is it ended for sure.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** A failure that its message explains fully: shown to the user without a stack trace. */
export class SetupError extends Error {
  name = 'SetupError';
}

/** The command line of a process, or '' if there is none (a zombie has none either). */
export function commandLine(pid) {
  if (process.platform === 'linux') {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch (error) {
      if (error.code === 'ENOENT' || error.code === 'ESRCH') return '';
      throw error;
    }
  }
  return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '';
}

/** Whether `pid` runs and its command line contains `marker`: process ids are used again, so the number proves nothing. */
export function isRunning(pid, marker) {
  return commandLine(pid).includes(marker);
}

/**
 * Ends a process that is not necessarily our child: `signal` first, SIGKILL when that was not enough.
 * Nothing is sent to a process whose command line does not contain `marker`.
 */
export async function endProcess({ pid, marker, signal = 'SIGTERM', patienceMs = 10_000 }) {
  const send = (name) => {
    try {
      process.kill(pid, name);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  };
  if (!isRunning(pid, marker)) return;
  send(signal);
  send('SIGCONT'); // a frozen process would not act on the signal
  if (await until(() => !isRunning(pid, marker), patienceMs)) return;
  send('SIGKILL');
  if (await until(() => !isRunning(pid, marker), 5_000)) return;
  throw new SetupError(`process ${pid} (${marker}) did not end, not even by SIGKILL`);
}

/** Asks `condition` again and again; false if it was still not met after `patienceMs`. */
export async function until(condition, patienceMs) {
  const end = Date.now() + patienceMs;
  for (;;) {
    if (await condition()) return true;
    if (Date.now() > end) return false;
    await sleep(25);
  }
}

const hasSetpriv = process.platform === 'linux' && spawnSync('setpriv', ['--version']).status === 0;

/**
 * A command, and its arguments, that is sent `signal` should we die without ending it. Only Linux can do that;
 * elsewhere the next run cleans up.
 * @returns {[string, string[]]} for spawn
 */
export function mortal(signal, command, args) {
  return hasSetpriv ? ['setpriv', ['--pdeathsig', signal.replace(/^SIG/, ''), command, ...args]] : [command, args];
}

/**
 * Spawns a process in a session of its own, so that Ctrl-C in the terminal does not reach it: whoever spawned it ends
 * it, in order.
 */
export function spawnDetached(command, args, { onParentDeath = 'SIGTERM', ...options }) {
  return spawn(...mortal(onParentDeath, command, args), { ...options, detached: true });
}

/**
 * Runs a command that gets the terminal, and resolves to its exit code. Ctrl-C reaches it by itself, as a member of the
 * terminal's foreground group; other signals are passed on, and it ends when we are gone or our own parent is.
 */
export function runInForeground(command, args, options = {}) {
  const child = spawn(...mortal('SIGTERM', command, args), { stdio: 'inherit', ...options });
  onEnd((signal) => signal !== 'SIGINT' && child.kill(signal));
  return exitCode(child);
}

/** How a child ended, as a shell would say it. */
export function exitCode(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

/**
 * Calls `act(signal)` when this process is asked to end: by Ctrl-C, by a signal, or because npm, which started it, is
 * gone and could no longer pass one on (this counts as SIGTERM). npm is our parent, and not a shell in between, since
 * the scripts in package.json say `exec`.
 */
export function onEnd(act) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => act(signal));
  if (!process.env.npm_lifecycle_event) return; // started by hand: `nohup node scripts/run.js … &` may outlive its shell
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    act('SIGTERM');
  }, 500).unref();
}

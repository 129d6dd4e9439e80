// What the demo and `npm start` share: the servers and the application as one thing that is started in order, and ended
// in the opposite order, whatever ends it: its work is done, Ctrl-C, a signal, an error, a server that died.
import { spawnDetached, endProcess, exitCode, onEnd, SetupError, until } from '../lib/processes.js';
import { MAIN, ROOT, RUNTIME } from '../lib/folders.js';
import { freePort, isFree } from '../servers/server.js';
import { startServices } from '../services.js';
import { constants } from 'node:os';
import { randomBytes } from 'node:crypto';

const READY_MS = 60_000;
/** A little longer than the application's own limit for its shutdown (SHUTDOWN_DEADLINE_MS). */
const DRAIN_MS = 20_000;

/**
 * Starts the servers, does `work`, ends all.
 * @param {Parameters<typeof startServices>[0]} options
 * @param {(system: { env: Record<string, string>, folder: string, flashgate: typeof startProgram, isEnding(): boolean }) => Promise<number>} work
 * @returns the exit code of `work`, or 128 + the signal's number
 */
export async function withSystem(options, work) {
  const programs = [];
  const ended = Promise.withResolvers();
  let askedToEnd = false;
  // Asked twice is asked once: npm passes on the Ctrl-C that the terminal sends us as well.
  onEnd((signal) => {
    askedToEnd = true;
    ended.resolve(128 + constants.signals[signal]);
  });
  const starting = startServices({ ...options, onLost: (reason) => ended.reject(new SetupError(reason)) });
  const working = starting.then(({ env, folder, guard }) => {
    const flashgate = (args, settings) => {
      const program = startProgram(args, settings);
      programs.unshift(program);
      guard(program.pid, MAIN);
      return program;
    };
    return askedToEnd ? 0 : work({ env, folder, flashgate, isEnding: () => askedToEnd });
  });
  try {
    return await Promise.race([working, ended.promise]);
  } finally {
    for (const { pid } of programs) await endProcess({ pid, marker: MAIN, patienceMs: DRAIN_MS });
    const [services] = await Promise.allSettled([starting]);
    await services.value?.stop();
    await Promise.allSettled([working]);
  }
}

/**
 * Starts `src/main.ts` with the pinned runtime, beyond the reach of the terminal's Ctrl-C.
 * @param {string[]} args
 * @param {{ env: Record<string, string>, stdio?: import('node:child_process').StdioOptions }} settings
 * @returns the child process, with `done`: a promise of its exit code
 */
function startProgram(args, { env, stdio = 'inherit' }) {
  const child = spawnDetached(RUNTIME, [MAIN, ...args], { cwd: ROOT, env: { ...process.env, ...env }, stdio });
  return Object.assign(child, { done: exitCode(child) });
}

/**
 * Waits until the program answers on `/readyz`.
 * @throws {SetupError} if it ends first, or takes too long
 */
export async function untilReady(program, url) {
  let code;
  program.done.then((value) => (code = value));
  const ready = await until(async () => code !== undefined || (await answers(`${url}/readyz`)), READY_MS);
  if (code !== undefined) throw new SetupError(`the application ended before it was ready (exit code ${code})`);
  if (!ready) throw new SetupError(`the application was not ready after ${READY_MS / 1000} s: ${url}/readyz`);
}

/** Whether a GET is answered with 2xx. */
export function answers(url) {
  return fetch(url, { signal: AbortSignal.timeout(2000) }).then(
    ({ ok }) => ok,
    () => false, // nobody listens, or not in time
  );
}

/** New tokens and secrets, as the settings want them. */
export function newSecrets() {
  return {
    SERVICE_TOKEN: randomBytes(24).toString('hex'),
    ADMIN_TOKEN: randomBytes(24).toString('hex'),
    SHOP_SESSION_SECRET: randomBytes(32).toString('hex'),
    WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64')}`,
  };
}

/** The first free port from `first` on. */
export async function firstFreePort(first) {
  for (let port = first; port < 65_536; port++) if (await isFree(port)) return port;
  return await freePort();
}

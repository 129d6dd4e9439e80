// What the three local servers have in common: a process with a log, a record on disk that lets a later run clean up
// after a killed one, a start that waits until the server says that it is ready, and a port that is picked again when
// somebody else was faster.
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { SetupError, endProcess, spawnDetached, until } from '../lib/processes.js';
import { removeFolder, removeRecord, writeRecord } from '../lib/records.js';

const START_PATIENCE_MS = 60_000;
const PORT_TAKEN = /address already in use|could not create any TCP\/IP sockets|EADDRINUSE/i;
const PORT_TRIES = 20;

/** Ports of 127.0.0.1 that were free a moment ago, each a different one. */
export function freePorts(count) {
  // Held until all are found, or the same one might be found twice.
  const listening = Array.from({ length: count }, () => listen(0));
  return Promise.all(listening).then((probes) => Promise.all(probes.map(close)));
}

export const freePort = async () => (await freePorts(1))[0];

/** Whether nobody listens on that port of 127.0.0.1. */
export const isFree = (port) =>
  listen(port).then(
    async (probe) => (await close(probe)) === port,
    (error) => {
      if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error;
      return false;
    },
  );

function listen(port) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(port, '127.0.0.1', () => resolve(probe));
  });
}

/** Resolves to the port that it listened on. */
function close(probe) {
  const { port } = probe.address();
  return new Promise((resolve) => probe.close(() => resolve(port)));
}

/**
 * Starts a server and waits until it is ready.
 * @param {object} options
 * @param {string} options.name of the server, for messages and file names
 * @param {string} options.folder where its log and its record are kept
 * @param {string} options.marker what in its command line proves that a process is this server: the path of its data
 * @param {(port: number) => { command: string, args: string[], options?: object }} options.command
 * @param {RegExp} options.ready what its log says when it is ready
 * @param {RegExp} [options.again] what its log says when the same start may succeed a little later
 * @param {string} options.stopSignal for a clean end
 * @param {string[]} [options.alsoRemove] folders elsewhere to remove when the server is cleaned up
 * @param {() => Promise<number>} [options.pickPort] picks a port; again, if somebody else took it in the meantime
 * @returns a server: name, port, pid (of the present process), exited (a promise), `kill(signal)`, `restart()` on the
 *   same port with the same data, `stop()`
 * @throws {SetupError} with the end of the server's log
 */
export async function startServer({ pickPort = freePort, ...options }) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await launch({ ...options, port: await pickPort() });
    } catch (error) {
      if (attempt === PORT_TRIES || !PORT_TAKEN.test(error.message)) throw error;
    }
  }
}

async function launch(options) {
  const { name, marker, port, stopSignal, alsoRemove = [] } = options;
  let child = await spawnReady(options);
  return {
    name,
    port,
    get pid() {
      return child.pid;
    },
    get exited() {
      return child.exited;
    },
    kill: (signal) => process.kill(child.pid, signal),
    restart: async () => {
      await endProcess({ pid: child.pid, marker, signal: stopSignal });
      child = await spawnReady(options);
    },
    stop: async () => {
      await endProcess({ pid: child.pid, marker, signal: stopSignal });
      removeRecord(options.folder, name);
      for (const path of alsoRemove) await removeFolder(path);
    },
  };
}

async function spawnReady(options) {
  const { name, ready, again } = options;
  const end = Date.now() + START_PATIENCE_MS;
  for (;;) {
    const { child, log } = spawnLogged(options);
    const state = () => (child.ended ? 'ended' : ready.test(log()) ? 'ready' : undefined);
    await until(() => state() !== undefined, end - Date.now());
    if (state() === 'ready') return child;
    const words = log();
    await endProcess({ pid: child.pid, marker: options.marker, signal: 'SIGKILL' });
    if (child.ended && again?.test(words) && Date.now() < end) continue;
    const what = child.ended ? `ended at once (${child.ended})` : `was not ready after ${START_PATIENCE_MS / 1000} s`;
    throw new SetupError(`${name} ${what}. The end of its log:\n${words.trim().split('\n').slice(-12).join('\n')}`);
  }
}

function spawnLogged(options) {
  const { name, folder, marker, stopSignal, alsoRemove = [], port } = options;
  const { command, args, options: spawnOptions = {} } = options.command(port);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.log`);
  writeFileSync(path, '');
  const file = openSync(path, 'a');
  const child = spawnDetached(command, args, {
    onParentDeath: stopSignal,
    ...spawnOptions,
    // A pipe to standard input that nobody writes to: it ends when this process does.
    stdio: ['pipe', file, file],
  });
  closeSync(file);
  child.exited = new Promise((resolve) => {
    child.once('error', (error) => resolve((child.ended = error.message)));
    child.once('exit', (code, signal) => resolve((child.ended = signal ?? `exit code ${code}`)));
  });
  child.unref();
  child.stdin.unref();
  writeRecord(folder, { name, pid: child.pid, marker, signal: stopSignal, alsoRemove });
  return { child, log: () => readFileSync(path, 'utf8') };
}

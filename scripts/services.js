// Starts the servers that flashgate needs, for the demo, for `npm start`, for tests and for benchmarks.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { RUNTIME } from './lib/folders.js';
import { SetupError } from './lib/processes.js';

const SUPERVISOR = fileURLToPath(new URL('./supervisor.js', import.meta.url));

/**
 * Starts Postgres, Redis and the queue on free ports of 127.0.0.1, or takes those named by DATABASE_URL, REDIS_URL and
 * SQS_QUEUE_URL, and says one line about each. They are watched by a process of their own, which ends them (processes
 * named by `guard` first) when `stop` is called and when this process dies, however it dies.
 *
 * @param {object} options
 * @param {string} options.name of the run: demo, start, test, …
 * @param {boolean} [options.keep] keep the data, for the next start; only one such run at a time
 * @param {boolean} [options.fast] give up durability for speed: for tests
 * @param {(line: string) => void} [options.say]
 * @param {(reason: string) => void} [options.onLost] called if a server, or its watcher, ends by itself
 * @returns {Promise<{ env: Record<string, string>, folder: string, guard(pid: number, marker: string): void, stop(): Promise<void> }>}
 *   env: DATABASE_URL, REDIS_URL, SQS_QUEUE_URL, SQS_DLQ_URL, SQS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID,
 *   AWS_SECRET_ACCESS_KEY, for a child process (of a queue that is not ours, only what is set).
 *   folder: this run's own, removed at its end.
 * @throws {SetupError} when one of them does not start: why, and what to do
 */
export async function startServices({ name, keep = false, fast = false, say = console.log, onLost = say }) {
  const supervisor = fork(SUPERVISOR, [name, JSON.stringify({ keep, fast })], {
    execPath: RUNTIME,
    execArgv: [],
    detached: true, // Ctrl-C is for us; the supervisor acts when we say so or are gone
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = new Promise((resolve) => supervisor.once('exit', resolve));
  let stopping = false;
  const ready = await new Promise((resolve, reject) => {
    supervisor.on('error', reject);
    supervisor.on('message', ({ line, failure, lost, ready }) => {
      if (line) say(line);
      if (failure) reject(new SetupError(failure));
      if (lost && !stopping) onLost(lost);
      if (ready) resolve(ready);
    });
    ended.then(() => reject(new SetupError('the process that starts the servers ended without a word')));
  });
  ended.then(() => {
    if (!stopping) onLost('the process that watches the servers ended, and they with it');
  });
  // From here on it does not keep this process alive by itself.
  supervisor.unref();
  supervisor.channel.unref();
  return {
    ...ready,
    guard: (pid, marker) => supervisor.send({ guard: { pid, marker } }),
    stop: async () => {
      stopping = true;
      supervisor.ref();
      if (supervisor.connected) supervisor.disconnect();
      await ended;
    },
  };
}

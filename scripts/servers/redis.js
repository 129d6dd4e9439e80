// The local Redis or Valkey: a private server with its own port and folder, set as flashgate needs it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findRedis } from './redis-program.js';
import { startServer } from './server.js';

/**
 * Starts Redis or Valkey, on the data in `folder` if there is any.
 * @param {object} options
 * @param {string} options.folder
 * @param {(line: string) => void} options.say
 * @param {boolean} [options.durable] what was answered survives a SIGKILL; otherwise the last second may be forgotten
 *   while the disk is busy
 * @param {(port: number) => Record<string, string | number>} [options.more] settings of Redis beside ours, or in their place
 * @param {() => Promise<number>} [options.pickPort] see server.js
 * @returns a server (see server.js) with `url` and `version`
 * @throws {SetupError} naming what to type when there is none to start
 */
export async function startRedis({ folder, say, durable = false, more = () => ({}), pickPort }) {
  const program = await findRedis(say);
  const data = join(folder, 'redis-data');
  mkdirSync(data, { recursive: true });
  const settings = {
    bind: '127.0.0.1',
    'protected-mode': 'yes',
    dir: data,
    databases: 512, // one per test file
    appendonly: 'yes',
    appendfsync: durable ? 'always' : 'everysec',
    save: '',
    'maxmemory-policy': 'noeviction', // an evicted key would be a forgotten hold
    'set-proc-title': 'no', // the command line tells a later run whose server this is
  };
  const server = await startServer({
    name: 'redis',
    folder,
    pickPort,
    marker: data,
    command: (port) => ({
      command: program.path,
      args: argsOf({ port, ...settings, ...more(port) }),
      options: { env: { ...process.env, ...program.env } },
    }),
    ready: /Ready to accept connections/i,
    stopSignal: 'SIGTERM',
  });
  return Object.assign(server, { url: `redis://127.0.0.1:${server.port}`, version: program.version });
}

/**
 * Starts a sentinel that watches one master and fails over by itself, within about a second.
 * @param {{ folder: string, say(line: string): void, name: string, master: number }} options name: of the master, for the
 *   sentinel and who asks it; master: its port on 127.0.0.1
 * @returns a server (see server.js) with `url`
 */
export async function startSentinel({ folder, say, name, master }) {
  const program = await findRedis(say);
  const data = join(folder, 'sentinel');
  mkdirSync(data, { recursive: true });
  const file = join(data, 'sentinel.conf'); // it writes what it learns into it
  writeFileSync(
    file,
    `dir ${data}\nset-proc-title no\nsentinel monitor ${name} 127.0.0.1 ${master} 1\n` +
      `sentinel down-after-milliseconds ${name} 1000\nsentinel failover-timeout ${name} 5000\n`,
  );
  const server = await startServer({
    name: 'sentinel',
    folder,
    marker: file,
    command: (port) => ({
      command: program.path,
      args: [file, '--sentinel', ...argsOf({ port, bind: '127.0.0.1' })],
      options: { env: { ...process.env, ...program.env } },
    }),
    ready: /\+monitor master/,
    stopSignal: 'SIGTERM',
  });
  return Object.assign(server, { url: `redis://127.0.0.1:${server.port}` });
}

const argsOf = (settings) => Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);

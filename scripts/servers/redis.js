// The local Redis or Valkey: a private server with its own port and folder, set as flashgate needs it.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findRedis } from './redis-program.js';
import { startServer } from './server.js';

/**
 * Starts Redis or Valkey, on the data in `folder` if there is any.
 * @param {{ folder: string, say(line: string): void, durable?: boolean, pickPort?: () => Promise<number> }} options
 *   durable: what was answered survives a SIGKILL; otherwise the last second may be forgotten while the disk is busy
 * @returns a server (see server.js) with `url` and `version`
 * @throws {SetupError} naming what to type when there is none to start
 */
export async function startRedis({ folder, say, durable = false, pickPort }) {
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
      args: Object.entries({ port, ...settings }).flatMap(([name, value]) => [`--${name}`, String(value)]),
      options: { env: { ...process.env, ...program.env } },
    }),
    ready: /Ready to accept connections/i,
    stopSignal: 'SIGTERM',
  });
  return Object.assign(server, { url: `redis://127.0.0.1:${server.port}`, version: program.version });
}

/**
 * A first process with two others, forked by processes.test.ts: it does what it is told by messages, and tells what it
 * logs and what came of it. The others are this file again, small, and as well-behaved as `as` says when they start.
 */
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { ApiProcesses } from '../../src/commands/processes.ts';

/** `as` is how those are that start from here on; `nowhere`: they cannot even be spawned. */
export type Told = { do?: 'start' | 'replace' | 'stop'; as?: 'good' | 'slow' | 'frozen' | 'nowhere' };
export type Tells = { line: { msg: string; pid?: number; outcome?: string } } | { codes: number[] };

const HOUR_MS = 3_600_000;

function lead(): void {
  const tell = (what: Tells) => process.send?.(what);
  const log = pino({ base: null }, { write: (line) => tell({ line: JSON.parse(line) as { msg: string } }) });
  const ms = (name: string) => Number(process.env[name] ?? HOUR_MS);
  const limits = { startMs: ms('START_MS'), killAfterMs: ms('KILL_AFTER_MS') };
  const processes = new ApiProcesses({ count: 2, log, restartAfterMs: 50, ...limits });
  cluster.on('message', () => log.info({}, 'one is ending'));
  process.on('message', ({ do: what, as }: Told) => {
    if (as !== undefined) {
      process.env['AS'] = as;
      cluster.setupPrimary({ cwd: as === 'nowhere' ? '/nowhere' : process.cwd() });
    }
    if (what === 'start') void processes.start().then(() => log.info({}, 'started'));
    if (what === 'replace') processes.replaceAll();
    if (what === 'stop') {
      void processes.stop().then((codes) => {
        tell({ codes });
        process.disconnect();
      });
    }
  });
  process.once('disconnect', () => process.exit(0));
}

/** Its exit code, once it has ended in its own time after SIGTERM. */
const IN_PEACE = 7;

async function follow(): Promise<void> {
  if (process.env['AS'] === 'frozen') process.kill(process.pid, 'SIGSTOP');
  if (process.env['AS'] === 'slow') await sleep(1000);
  process.once('SIGTERM', () => {
    process.send?.('ending');
    setTimeout(() => process.exit(IN_PEACE), 500);
  });
  createServer().listen(0, '127.0.0.1');
}

if (cluster.isPrimary) lead();
else await follow();

/** The product's own processes, `src/main.ts` with a command: started, watched by what they log, killed, started again. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { until } from '../ledger/house.ts';
import { runtime } from '../support/runtime.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE = join(ROOT, 'node_modules/node/bin/node');
/** Ends the process with the test's, however that ends. Only Linux can do that; elsewhere `afterAll` has to be enough. */
const MORTAL = process.platform === 'linux' && existsSync('/usr/bin/setpriv') ? ['setpriv', '--pdeathsig', 'KILL'] : [];

export type Ended = { code: number | null; signal: NodeJS.Signals | null };
export type Said = { msg: string; level: number; [member: string]: unknown };

export type Running = {
  pid: number;
  ended: Promise<Ended>;
  /** What it has logged so far; what is no JSON is a message of its own. */
  said: Said[];
  /** Waits for a message, or tells how the process ended instead. */
  saying(msg: string): Promise<Said>;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and its exit code. */
  stop(): Promise<Ended>;
};

const running = new Set<ChildProcess>();
afterAll(async () => {
  await Promise.all(
    [...running].map((child) => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      return ended;
    }),
  );
});

export function start(command: string[], env: Record<string, string>): Running {
  const [program = NODE, ...args] = [...MORTAL, NODE, join(ROOT, 'src/main.ts'), ...command];
  const child = spawn(program, args, {
    env: { ...runtime, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const said: Said[] = [];
  for (const stream of [child.stdout, child.stderr]) read(stream, (line) => said.push(parse(line)));
  let end: Ended | undefined;
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve((end = { code, signal }));
    });
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started`);
  return {
    pid,
    ended,
    said,
    saying: async (msg) => {
      const found = () => said.find((line) => line.msg === msg);
      await until(() => end !== undefined || found() !== undefined);
      const line = found();
      if (!line)
        throw new Error(`${command.join(' ')} ended (${JSON.stringify(end)}) before it said "${msg}":
${said.map((each) => JSON.stringify(each)).join('\n')}`);
      return line;
    },
    kill: (signal) => child.kill(signal),
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** An API process, once it listens. */
export async function serve(env: Record<string, string>): Promise<Running & { url: string }> {
  const child = start(['serve'], { PORT: '0', ...env });
  const { address } = await child.saying('the API listens');
  return { ...child, url: String(address) };
}

function read(stream: NodeJS.ReadableStream, each: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) each(line);
  });
}

function parse(line: string): Said {
  try {
    return JSON.parse(line) as Said;
  } catch {
    return { msg: line, level: 0 };
  }
}

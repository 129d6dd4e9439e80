/** The command line as real processes, each ended with the test that started it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

export type Program = {
  /** Resolves with the first line of its log that has this message. */
  says: (msg: string) => Promise<Record<string, unknown>>;
  /** Every line that it logged at `warn` or above. */
  complaints: Record<string, unknown>[];
  /** Sends the signal, if it still runs. @returns its exit code, or the signal that ended it */
  end: (signal?: NodeJS.Signals) => Promise<number | string | null>;
};

/** Starts `flashgate NAME`; its log is read, its errors are shown. */
export function start(name: string, env: Record<string, string>): Program {
  const child: ChildProcess = spawn(process.execPath, [MAIN, name], {
    env: { ...process.env, ...env, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | string | null);
  const complaints: Record<string, unknown>[] = [];
  const seen: Record<string, unknown>[] = [];
  const waiting = new Map<string, (line: Record<string, unknown>) => void>();
  if (!child.stdout) throw new Error('its output is piped');
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as Record<string, unknown>;
    seen.push(line);
    if (Number(line['level']) >= 40) complaints.push(line);
    waiting.get(String(line['msg']))?.(line);
  });
  return {
    complaints,
    says: async (msg) => {
      const before = seen.find((line) => line['msg'] === msg);
      const said = new Promise<Record<string, unknown>>((resolve) => waiting.set(msg, resolve));
      const ended = exited.then((how) => Promise.reject(new Error(`${name} ended (${String(how)}) before: ${msg}`)));
      return before ?? Promise.race([said, ended]);
    },
    end: (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return exited;
    },
  };
}

/** Runs a command to its end. @returns exit code and output */
export async function run(args: string[], env: Record<string, string>): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

/** Helpers of the bench that run as processes of their own; each ends when the bench does, however that ends. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

const running = new Set<ChildProcess>();

/** Ends all that still run, at once: for the end of the bench, whatever it was doing. */
export function killChildren(): void {
  for (const child of running) child.kill('SIGKILL');
}

/**
 * Starts a TypeScript file as a process and waits for its first message.
 * @returns the child, and that message
 * @throws {Error} when it ends first; it has said why on standard error
 */
export async function startChild(
  file: string,
  { env = {}, execArgv = [], cwd }: { env?: Record<string, string>; execArgv?: string[]; cwd?: string } = {},
): Promise<{ child: ChildProcess; first: unknown }> {
  const child = fork(file, [], {
    env: { ...process.env, ...env },
    execArgv,
    ...(cwd === undefined ? {} : { cwd }),
    serialization: 'advanced',
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const [first] = await Promise.race([once(child, 'message'), endedEarly(child, file)]);
  return { child, first };
}

async function endedEarly(child: ChildProcess, file: string): Promise<never[]> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  throw new Error(`${file} ended (${signal ?? `exit code ${String(code)}`}) before it was ready`);
}

/**
 * Sends a message and waits for the next one that comes back.
 * @throws {Error} when the child ends instead; it has said why on standard error
 */
export async function ask(child: ChildProcess, message: object): Promise<unknown> {
  const heard = new AbortController();
  const { signal } = heard;
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a helper of the bench ended in the middle of its work (exit code ${String(code)})`);
  });
  ended.catch(() => undefined); // called off when the answer came first
  child.send(message);
  try {
    const [reply] = (await Promise.race([once(child, 'message', { signal }), ended])) as [unknown];
    return reply;
  } finally {
    heard.abort();
  }
}

/** Asks a child to end, and waits until it has. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  if (child.connected) child.disconnect();
  await ended;
}

/** In a child: says that it is ready; when the bench lets go of it, `close` is called and the process exits. */
export function ready(message: object, close: () => void | Promise<void>): void {
  process.send?.(message);
  process.once('disconnect', () => {
    void Promise.resolve(close()).finally(() => process.exit(0));
  });
}

/** Helpers of the bench that run as processes of their own; each ends when the bench does, however that ends. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

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
  const [first] = await Promise.race([once(child, 'message'), endedEarly(child, file)]);
  return { child, first };
}

async function endedEarly(child: ChildProcess, file: string): Promise<never[]> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  throw new Error(`${file} ended (${signal ?? `exit code ${String(code)}`}) before it was ready`);
}

/** Asks a child to end, and waits until it has. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  if (child.connected) child.disconnect();
  await ended;
}

/** In a child: says that it is ready, and ends it when the bench lets go of it. */
export function ready(message: object, close: () => void | Promise<void>): void {
  process.send?.(message);
  process.once('disconnect', () => {
    void Promise.resolve(close()).finally(() => process.exit(0));
  });
}

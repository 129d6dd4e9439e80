/** Another clone of the project, as far as the set-up is concerned: its scripts, in a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { inject } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** Below this run's own folder, which is removed at its end whatever happens here. */
export function makeClone(name: string, options: { installed: boolean } = { installed: true }): string {
  const clone = join(inject('services').folder, `clone-${name}`);
  mkdirSync(join(clone, '.flashgate'), { recursive: true });
  for (const part of ['scripts', 'bin', 'package.json', 'package-lock.json']) {
    cpSync(join(ROOT, part), join(clone, part), { recursive: true });
  }
  if (options.installed) symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  const redis = join(ROOT, '.flashgate/redis');
  if (existsSync(redis)) cpSync(redis, join(clone, '.flashgate/redis'), { recursive: true, verbatimSymlinks: true });
  return clone;
}

export type Run = { child: ChildProcess; env: Record<string, string>; folder: string; servers: ServerRecord[] };
export type ServerRecord = { name: string; pid: number; marker: string };

/** A process that starts the services of a clone, and then does nothing until it is ended. */
export async function startRun(clone: string, options: { keep?: boolean } = {}): Promise<Run> {
  const program = `
    import { startServices } from ${JSON.stringify(join(clone, 'scripts/services.js'))};
    const { env, folder } = await startServices({ name: 'try', fast: true, say() {}, ...${JSON.stringify(options)} });
    console.log(JSON.stringify({ env, folder }));
    process.stdin.resume().on('end', () => process.exit());`; // the end of our own process, too
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: withoutServices(),
  });
  let errors = '';
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  for await (const line of createInterface({ input: child.stdout })) {
    const { env, folder } = JSON.parse(line) as Pick<Run, 'env' | 'folder'>;
    return { child, env, folder, servers: readRecords(options.keep ? join(clone, '.flashgate/start') : folder) };
  }
  throw new Error(`the services did not start: ${errors}`);
}

/** The environment without what would replace a server of our own. */
export function withoutServices(): NodeJS.ProcessEnv {
  const replaced = ['DATABASE_URL', 'REDIS_URL', 'SQS_QUEUE_URL'];
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !replaced.includes(name)));
}

function readRecords(folder: string): ServerRecord[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.server.json'))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as ServerRecord);
}

/**
 * What the operations room has done apart from the API's own work: an audit and a rush are processes of their own, whose
 * memory and time are not the API's; the metrics of all API processes come from the first one, which adds them up.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Registry } from 'prom-client';
import type { Room, RushOptions } from '../http/ops/room.ts';

const MAIN = join(import.meta.dirname, '../main.ts');
/** What the room reads of them; in `up` there are others, which cost a query. */
const METRICS = ['flashgate_answers_total', 'flashgate_latched_total', 'flashgate_gate_call_seconds'];
/** How long a mismatch must last to count: the system is at work. */
const SETTLE_SECONDS = '3';
const AUDIT_MS = 300_000;
const RUSH_MS = 600_000;
const ASK_MS = 5000;

/**
 * @param env this process' settings, for the others
 * @param demo addresses that a rush needs; left out, nobody can start one
 */
export function roomOf(
  registry: Registry,
  env: NodeJS.ProcessEnv,
  demo?: { apiUrl: string; providerUrl: string },
): Room {
  const children = new Set<ChildProcess>();
  const run = (args: string[], limitMs: number, onLine?: (line: string) => void) =>
    reportOf({ children, env, limitMs }, args, onLine);
  return {
    metrics: cluster.isWorker ? askFirst : () => ownMetrics(registry),
    audit: (saleId) => run(['audit', '--sale', saleId, '--settle', SETTLE_SECONDS], AUDIT_MS),
    ...(demo && {
      rush: {
        run: (options: RushOptions, onLine: (line: string) => void) => run(rushArgs(demo, options), RUSH_MS, onLine),
      },
    }),
    close: () => {
      for (const child of children) child.kill('SIGKILL'); // both only read, or play; nothing of theirs is lost
    },
  };
}

function rushArgs({ apiUrl, providerUrl }: { apiUrl: string; providerUrl: string }, options: RushOptions): string[] {
  const { saleId, buyers, overSeconds } = options;
  return [
    ...['rush', '--url', apiUrl, '--provider-url', providerUrl, '--sale', saleId],
    // More and more of them, so that there is something to watch before all is gone.
    ...[
      '--arrival',
      'ramp',
      '--buyers',
      String(buyers),
      '--over',
      String(overSeconds),
      '--seed',
      String(Date.now() % 2 ** 31),
    ],
  ];
}

/**
 * Runs a command of flashgate that writes a report, with this process' own settings.
 * @returns its report, whatever its exit code says: that is in the report too
 * @throws {Error} with its last words, when there is none
 */
async function reportOf(
  { children, env, limitMs }: { children: Set<ChildProcess>; env: NodeJS.ProcessEnv; limitMs: number },
  args: string[],
  onLine: (line: string) => void = () => undefined,
): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), 'flashgate-room-'));
  const file = join(folder, 'report.json');
  try {
    const child = spawn(process.execPath, [MAIN, ...args, '--report', file], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limitMs,
      env,
    });
    children.add(child);
    let last = '';
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        if (line.trim() === '') return;
        last = line;
        onLine(line);
      });
    }
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (...how) => resolve(how));
    }).finally(() => children.delete(child));
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      throw new Error(`${args[0] ?? ''} ended by ${signal ?? `exit code ${code ?? '?'}`} without a report: ${last}`, {
        cause: error,
      });
    });
    return JSON.parse(text) as object;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function ownMetrics(registry: Registry): Promise<string> {
  const known = METRICS.filter((name) => registry.getSingleMetric(name));
  return (await Promise.all(known.map((name) => registry.getSingleMetricAsString(name)))).join('\n');
}

type Question = { flashgate: 'metrics?'; id: string };
type Answer = { flashgate: 'metrics'; id: string; text?: string; error?: string };
const isQuestion = (message: unknown): message is Question =>
  message instanceof Object && 'flashgate' in message && message.flashgate === 'metrics?';
const isAnswer = (message: unknown): message is Answer =>
  message instanceof Object && 'flashgate' in message && message.flashgate === 'metrics';

/** In the first process: tells those that ask what the metrics' page shows. */
export function tellMetrics(metrics: () => Promise<string>): void {
  cluster.on('message', (worker: Worker, message: unknown) => {
    if (!isQuestion(message)) return;
    const answer = (rest: Omit<Answer, 'flashgate' | 'id'>) => {
      if (worker.isConnected()) worker.send({ flashgate: 'metrics', id: message.id, ...rest } satisfies Answer);
    };
    metrics().then(
      (text) => answer({ text }),
      (error: unknown) => answer({ error: String(error) }),
    );
  });
}

/** In one of the others. @throws {Error} when there is no answer in time */
function askFirst(): Promise<string> {
  const id = randomUUID();
  return new Promise((resolve, reject) => {
    const done = (settle: () => void) => {
      clearTimeout(late);
      process.off('message', listen);
      settle();
    };
    const listen = (message: unknown) => {
      if (!isAnswer(message) || message.id !== id) return;
      const { text, error } = message;
      done(() => (text === undefined ? reject(new Error(error)) : resolve(text)));
    };
    const late = setTimeout(() => done(() => reject(new Error('the first process did not answer'))), ASK_MS);
    process.on('message', listen);
    process.send?.({ flashgate: 'metrics?', id } satisfies Question);
  });
}

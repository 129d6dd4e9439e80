/**
 * The API processes of one `serve`, looked after by the first process: always as many as are wanted. One that dies is
 * started again. In a replacement the new one starts first and the old one goes only when the new one listens; until then
 * the new one counts for nothing, so that nobody else starts another in its stead when it dies.
 */
import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';

export type ProcessesOptions = {
  count: number;
  log: Logger;
  /** A process that dies again and again is not started faster than this, in milliseconds. */
  restartAfterMs: number;
  /** How long a new one may take to listen before a replacement is given up, in milliseconds. */
  startMs: number;
  /** How long after SIGTERM one that is still there is killed, in milliseconds: it keeps no deadline of its own. */
  killAfterMs: number;
};

export class ApiProcesses {
  #options: ProcessesOptions;
  /** Those that count: they serve, or are about to. */
  #serving = new Set<Worker>();
  /** Those that were told to end, with their exit codes to come. */
  #ending = new WeakMap<Worker, Promise<number>>();
  #stopping = false;
  /** Settled when neither the start nor a replacement is under way. */
  #idle: Promise<unknown> = Promise.resolve();
  #wanted = false;

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  /** @returns undefined once all of them listen; if one ends before, the others are ended too: its exit code, never 0 */
  start(): Promise<number | undefined> {
    const started = this.#startAll();
    this.#idle = started;
    return started;
  }

  async #startAll(): Promise<number | undefined> {
    let failed: number | undefined;
    const first = Array.from({ length: this.#options.count }, () => this.#serve(this.#fork()));
    for (const worker of first) worker.once('exit', (code) => (failed ??= code || 1));
    const outcomes = await Promise.all(first.map((worker) => started(worker)));
    if (!outcomes.includes('ended')) return undefined;
    await this.stop();
    return failed ?? 1; // it has said why
  }

  /** One replacement at a time: one that is asked for meanwhile follows, once, however often it is asked for. */
  replaceAll(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#idle = this.#idle.then(() => {
      this.#wanted = false;
      return this.#replaceEach();
    });
  }

  async #replaceEach(): Promise<void> {
    const { log, count, startMs } = this.#options;
    const stopping = () => this.#stopping; // it may be by now, whatever was so before
    if (!stopping()) log.info({ processes: count }, 'replacing all API processes');
    for (const old of [...this.#serving]) {
      if (stopping()) return;
      if (!this.#serving.has(old)) continue; // it has died since: what was started in its stead is new as well
      const fresh = this.#fork();
      const outcome = await started(fresh, startMs);
      if (stopping()) return;
      if (outcome !== 'listening') {
        log.error({ pid: fresh.process.pid, outcome }, 'a new API process does not listen: the old ones stay');
        await this.#end(fresh);
        return;
      }
      this.#serving.delete(old);
      const inItsStead = this.#serving.size === count; // it has died since, and that one is started
      if (!inItsStead) this.#serve(fresh);
      await this.#end(inItsStead ? fresh : old);
    }
    log.info({}, 'all API processes are replaced');
  }

  /** Ends all of them, also those that are about to come or to go. @returns their exit codes */
  stop(): Promise<number[]> {
    this.#stopping = true;
    const all = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    return Promise.all(all.map((worker) => this.#end(worker)));
  }

  /** Whether there is anybody to serve. */
  get serving(): boolean {
    return !this.#stopping && this.#serving.size > 0;
  }

  #fork(): Worker {
    const worker = cluster.fork();
    // Unheard, an error would end this process, and with it all of them.
    worker.on('error', (err) => {
      const { pid } = worker.process;
      this.#options.log.warn({ err, pid }, 'an API process could not be started, or not be spoken to');
      if (worker.isDead()) worker.emit('exit', 1, null); // Node.js tells no end of what never began
    });
    return worker;
  }

  /** From here on it counts. */
  #serve(worker: Worker): Worker {
    const { log, count, restartAfterMs } = this.#options;
    this.#serving.add(worker);
    worker.once('exit', (code) => {
      if (!this.#serving.delete(worker) || this.#stopping) return;
      log.error({ pid: worker.process.pid, code }, 'an API process died: another one is started');
      setTimeout(() => {
        if (!this.#stopping && this.#serving.size < count) this.#serve(this.#fork());
      }, restartAfterMs);
    });
    return worker;
  }

  /** SIGTERM lets it answer what it has. @returns its exit code; 1 when a signal ended it that was not asked for */
  #end(worker: Worker): Promise<number> {
    const ending = this.#ending.get(worker) ?? this.#endOnce(worker);
    this.#ending.set(worker, ending);
    return ending;
  }

  /** A second SIGTERM would cut off what the first lets it finish. */
  #endOnce(worker: Worker): Promise<number> {
    if (worker.isDead()) return Promise.resolve(0); // told when it died
    return new Promise((resolve) => {
      const killing = setTimeout(() => worker.process.kill('SIGKILL'), this.#options.killAfterMs);
      worker.once('exit', (code: number | null, signal: string | null) => {
        clearTimeout(killing);
        resolve(code ?? (signal === 'SIGTERM' ? 0 : 1)); // by SIGTERM itself: it had not even started
      });
      worker.process.kill('SIGTERM');
    });
  }
}

/** @param withinMs left out, it is waited for */
async function started(worker: Worker, withinMs?: number): Promise<'listening' | 'ended' | 'late'> {
  let late: NodeJS.Timeout | undefined;
  const outcome = await new Promise<'listening' | 'ended' | 'late'>((resolve) => {
    worker.once('listening', () => resolve('listening'));
    worker.once('exit', () => resolve('ended'));
    if (withinMs !== undefined) late = setTimeout(() => resolve('late'), withinMs);
  });
  clearTimeout(late);
  return outcome;
}

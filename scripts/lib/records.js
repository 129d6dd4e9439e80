// Notes on disk about the servers that run, one file each, so that a run can clean up after one that was killed.
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RUNS } from './folders.js';
import { endProcess, isRunning } from './processes.js';

const SUFFIX = '.server.json';

/**
 * @param {string} folder
 * @param {{ name: string, pid: number, marker: string, signal: string, alsoRemove?: string[] }} record
 *   marker: what proves that the process is still that server; alsoRemove: its folders elsewhere
 */
export function writeRecord(folder, record) {
  const path = recordPath(folder, record.name);
  writeFileSync(`${path}.new`, JSON.stringify(record));
  renameSync(`${path}.new`, path); // never half a record, whenever we are killed
}

export function removeRecord(folder, name) {
  rmSync(recordPath(folder, name), { force: true });
}

function recordPath(folder, name) {
  return join(folder, name + SUFFIX);
}

/** Ends every server that is noted in the folder or below, and removes what it kept elsewhere. */
export async function cleanFolder(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(SUFFIX));
  for (const name of names) {
    const { alsoRemove = [], ...server } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    await endProcess(server);
    for (const path of alsoRemove) rmSync(path, { recursive: true, force: true });
    rmSync(join(folder, name));
  }
}

/** Cleans up after runs whose supervisor is gone. A run's folder is named after its supervisor: NAME-PID. */
export async function cleanDeadRuns() {
  const runs = existsSync(RUNS) ? readdirSync(RUNS) : [];
  for (const run of runs) {
    if (isRunning(run.split('-').at(-1), 'supervisor.js')) continue;
    await cleanFolder(join(RUNS, run));
    rmSync(join(RUNS, run), { recursive: true, force: true });
  }
}

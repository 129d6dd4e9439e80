// Notes on disk about the servers that run, one file each, so that a run can clean up after one that was killed.
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
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

/** Ends every server that is noted in the folder or in one directly below, and removes what it kept elsewhere. */
export async function cleanFolder(folder) {
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const place of [folder, ...below.map(({ name }) => join(folder, name))]) {
    for (const name of readdirSync(place).filter((file) => file.endsWith(SUFFIX))) {
      const record = read(join(place, name));
      if (!record) continue;
      const { alsoRemove = [], ...server } = record;
      await endProcess(server);
      for (const path of alsoRemove) await removeFolder(path);
      rmSync(join(place, name), { force: true });
    }
  }
}

/** Whoever wrote a record may take it away in the meantime, since it ended the server itself. */
function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** With some patience: a process that is about to end may still write to it. */
export async function removeFolder(path) {
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}

/** Cleans up after runs whose supervisor is gone. A run's folder is named after its supervisor: NAME-PID. */
export async function cleanDeadRuns() {
  const runs = existsSync(RUNS) ? readdirSync(RUNS) : [];
  for (const run of runs) {
    if (isRunning(run.split('-').at(-1), 'supervisor.js')) continue;
    await cleanFolder(join(RUNS, run));
    await removeFolder(join(RUNS, run));
  }
}

// A lock file that survives a killed owner: it names the owner's process, and a dead owner's lock is taken over.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { isRunning } from './processes.js';

/**
 * Takes the lock, or returns undefined if a living process has it.
 * @param {string} path the lock file
 * @param {string} marker part of the command line of every process that takes this lock
 * @returns {{ release(): void } | undefined}
 */
export function tryLock(path, marker) {
  mkdirSync(dirname(path), { recursive: true });
  const mine = `${path}.${randomUUID()}`;
  writeFileSync(mine, String(process.pid));
  try {
    for (;;) {
      try {
        linkSync(mine, path); // with its content at once: nobody sees a lock without an owner
        return { release: () => rmSync(path, { force: true }) };
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
      const owner = read(path);
      if (owner !== undefined && isRunning(owner, marker)) return undefined;
      // Moved away before it is removed: of two that find it dead, the slower one must not remove the faster one's.
      const stale = `${path}.${randomUUID()}`;
      if (owner === undefined || !move(path, stale)) continue;
      if (read(stale) !== owner) move(stale, path);
      rmSync(stale, { force: true });
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

function read(path) {
  return unlessGone(() => Number(readFileSync(path, 'utf8')));
}

function move(from, to) {
  return unlessGone(() => {
    renameSync(from, to);
    return true;
  });
}

function unlessGone(work) {
  try {
    return work();
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

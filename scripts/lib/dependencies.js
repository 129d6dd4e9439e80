// Installs the dependencies when node_modules is not what package-lock.json says.
// Node.js built-ins only: this runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT, RUNTIME, STATE } from './folders.js';
import { tryLock } from './lock.js';
import { SetupError, mortal } from './processes.js';

const STAMP = join(ROOT, 'node_modules', '.flashgate-lock-hash');

/**
 * Runs `npm ci` if it is needed; one of two runs at once waits for the other.
 * @throws {SetupError} when npm fails, with npm's own words
 */
export async function ensureDependencies(say) {
  if (installed()) return;
  const path = join(STATE, 'install.lock');
  let lock = tryLock(path, 'run.js');
  if (!lock) say('dependencies  another run on this clone installs them; waiting');
  while (!lock) {
    await sleep(200);
    lock = tryLock(path, 'run.js');
  }
  try {
    if (!installed()) install(say);
  } finally {
    lock.release();
  }
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .digest('hex');
}

function installed() {
  if (!existsSync(RUNTIME)) return false;
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === lockHash()) return true;
  if (!installedByHand()) return false;
  writeFileSync(STAMP, lockHash());
  return true;
}

/** A developer's `npm install` leaves no stamp, but npm notes at its end what it installed. */
function installedByHand() {
  const record = join(ROOT, 'node_modules', '.package-lock.json');
  if (!existsSync(record)) return false;
  const has = JSON.parse(readFileSync(record, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === '' || (has[path] ? has[path].version === version : optional),
  );
}

function install(say) {
  say('dependencies  npm ci, from package-lock.json');
  // npm replaces node_modules, so it must not be run by the Node.js that lies in there.
  const path = process.env.PATH.split(delimiter).filter((folder) => !folder.startsWith(join(ROOT, 'node_modules')));
  const npm = spawnSync(...mortal('SIGTERM', 'npm', ['ci', '--loglevel=error']), {
    cwd: ROOT,
    env: { ...process.env, PATH: path.join(delimiter) },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  if (npm.error?.code === 'ENOENT' || npm.status === 127) {
    throw new SetupError('npm is not on PATH. Install Node.js 20 or newer together with npm, then run this again.');
  }
  if (npm.status !== 0) {
    // npm's reason comes first, and its usage after it.
    const reason = npm.error?.message ?? npm.stderr.trim().split('\n').slice(0, 12).join('\n');
    throw new SetupError(`npm ci failed:\n${reason}\nMend that, then run the same command again.`);
  }
  if (!existsSync(RUNTIME)) {
    throw new SetupError(
      'npm ci left out the pinned Node.js (node_modules/node/bin/node), since install scripts are switched off here.\n' +
        'Type: npm ci --ignore-scripts=false',
    );
  }
  writeFileSync(STAMP, lockHash());
}

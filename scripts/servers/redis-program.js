// Finds a Redis or Valkey server to run: on PATH, or unpacked from the distribution's package into .flashgate/redis/.
// Nothing is installed on the machine: no root, no system service.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { hasPackages, librariesIn, onPath, unpackPackages } from '../lib/debian.js';
import { STATE } from '../lib/folders.js';
import { SetupError } from '../lib/processes.js';

const OLDEST = 7;

/**
 * @param {(line: string) => void} say
 * @param {string} [home] where a downloaded package is unpacked
 * @returns {Promise<{ path: string, version: string, env: Record<string, string> }>}
 * @throws {SetupError} naming the command to type
 */
export async function findRedis(say, home = join(STATE, 'redis')) {
  for (const name of ['valkey-server', 'redis-server']) {
    const found = probe(name, {});
    if (found && found.major >= OLDEST) return found;
  }
  if (!hasPackages()) throw new SetupError(howToInstall(process.platform));
  return unpacked(home) ?? download(say, home);
}

/** What to type where nothing can be downloaded without a system's administrator. */
export function howToInstall(platform) {
  const command =
    platform === 'darwin'
      ? 'brew install valkey'
      : ([
          ['dnf', 'sudo dnf install valkey'],
          ['apk', 'sudo apk add valkey'],
          ['pacman', 'sudo pacman -S valkey'],
          ['zypper', 'sudo zypper install valkey'],
        ].find(([tool]) => onPath(tool))?.[1] ?? 'your system’s command for the package valkey or redis');
  return (
    `There is no valkey-server or redis-server of version ${OLDEST} or newer on PATH.\n` +
    `Type: ${command}\nOr set REDIS_URL to one that runs, e.g. REDIS_URL=redis://127.0.0.1:6379`
  );
}

function probe(path, env) {
  const { status, stdout } = spawnSync(path, ['--version'], { env: { ...process.env, ...env }, encoding: 'utf8' });
  const version = status === 0 ? /v=(\d+)(\.\S+)/.exec(stdout) : null;
  return version ? { path, env, version: version[1] + version[2], major: Number(version[1]) } : undefined;
}

/** The program in an unpacked package, or undefined if it does not run: half unpacked, say. */
function unpacked(home) {
  return probe(join(home, 'usr', 'bin', 'redis-server'), { LD_LIBRARY_PATH: librariesIn(home) });
}

function download(say, home) {
  say('redis  none on PATH; downloading the package redis-server into .flashgate/redis (nothing is installed)');
  try {
    unpackPackages({
      home,
      sample: 'redis-tools',
      packages: (apt) => ['redis-server', 'redis-tools', ...missingLibraries(apt)],
      check: newEnough,
    });
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    throw new SetupError(`${error.message}\n${howToInstall('linux')}`);
  }
  return unpacked(home);
}

function newEnough(tree) {
  const program = unpacked(tree);
  if (program && program.major < OLDEST) throw new SetupError(`This system's redis-server is ${program.version}.`);
  return program;
}

/** The libraries that redis-tools names and this machine does not have. */
function missingLibraries(apt) {
  const depends = apt('apt-cache', 'depends', '--important', 'redis-tools');
  const names = [...depends.matchAll(/^\s*(?:Pre)?Depends: (\w\S*)$/gm)].map(([, name]) => name);
  return names.filter((name) => {
    const { stdout } = spawnSync('dpkg-query', ['-W', '-f=${Status}', name], { encoding: 'utf8' });
    return name.startsWith('lib') && !stdout.includes('install ok installed');
  });
}

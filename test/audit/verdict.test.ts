/** What the audit answers when it cannot judge, what it prints, and where it writes what it found. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type AuditReport, exitCodeOf } from '../../src/audit/audit.ts';
import { auditCommand, type AuditCommandOptions } from '../../src/audit/command.ts';
import { makeReport } from '../../src/audit/report.ts';
import { privatePostgres, privateRedis } from '../support/servers.ts';
import { hold, key, writeGate, young } from './sound.ts';
import { auditStores, type AuditStores, redChecks } from './stores.ts';

/** A port of this machine on which nobody listens. */
const NOBODY = '127.0.0.1:1';

let stores: AuditStores;
let folder: string;
beforeAll(async () => {
  stores = await auditStores();
  folder = await mkdtemp(join(tmpdir(), 'flashgate-audit-'));
});
beforeEach(() => stores.refill());
afterAll(async () => {
  await rm(folder, { recursive: true });
  await stores.drop();
});

const oversell = () => stores.db.query(`update sale_stock set sold = 5 where sale_id = 'closed'`);

async function command(options: AuditCommandOptions, env: Record<string, string> = {}) {
  const lines: string[] = [];
  const { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL } = stores;
  const code = await auditCommand(options, { DATABASE_URL, REDIS_URL, AUDIT_GRACE_MS: '600000', ...env }, (line) =>
    lines.push(line),
  );
  return { code, lines, text: lines.join('\n') };
}

test('an audit of nothing has judged nothing', async () => {
  expect(exitCodeOf(makeReport([], [], [], 5))).toBe(3);
  await stores.db.query(
    `set session_replication_role = replica; truncate sales cascade; reset session_replication_role`,
  );
  const report = await stores.audit();
  expect(exitCodeOf(report)).toBe(3);
  expect(report.unjudged).toEqual([
    { what: 'sale (any)', why: 'the ledger has no sale, so there is nothing to check' },
  ]);
});

test('a sale that there is not cannot be judged', async () => {
  const report = await stores.audit({ saleId: 'nope', settleSeconds: 600 });
  expect(exitCodeOf(report)).toBe(3);
  expect(report.unjudged).toEqual([{ what: 'sale nope', why: 'the ledger has no such sale' }]);
});

test('one sale is judged by itself, with its own money', async () => {
  await oversell();
  await stores.db.query(`update payments set status = 'OWED' where payment_id = 'pay-old'`);
  const live = await stores.audit({ saleId: 'live' });
  expect(live.verdict).toBe('holds');
  expect(live.sales.map(({ saleId }) => saleId)).toEqual(['live']);
  expect(live.checks.every(({ saleId }) => saleId === 'live')).toBe(true);
  const closed = await stores.audit({ saleId: 'closed' });
  expect(redChecks(closed)).toEqual([
    ...['journal_sums_to_sold', 'owed_payment_has_one_refund', 'paid_order_has_one_payment', 'sold_is_live_orders'],
  ]);
});

test('Redis out of reach: exit 3 and why; what the ledger alone shows is told all the same', async () => {
  await oversell();
  const report = await stores.audit({ redisUrl: `redis://:secret@${NOBODY}/0` });
  expect(exitCodeOf(report)).toBe(3);
  expect(report.unjudged).toContainEqual({
    what: 'the gate of sale live',
    why: `Redis at ${NOBODY}: connect ECONNREFUSED ${NOBODY}`,
  });
  expect(redChecks(report)).toEqual(['journal_sums_to_sold', 'sold_is_live_orders']);
});

test('Postgres out of reach: exit 3 and why, with nothing checked', async () => {
  const report = await stores.audit({ databaseUrl: `postgres://someone:secret@${NOBODY}/flashgate` });
  expect(report).toMatchObject({ verdict: 'unjudged', checks: [], sales: [] });
  expect(report.unjudged).toEqual([
    { what: 'the ledger', why: `Postgres at ${NOBODY}: connect ECONNREFUSED ${NOBODY}` },
  ]);
});

test('a ledger without the schema cannot be judged', async () => {
  await stores.db.query('alter table refunds rename to given_back');
  const report = await stores.audit().finally(() => stores.db.query('alter table given_back rename to refunds'));
  expect(report.unjudged[0]?.why).toContain('relation "refunds" does not exist');
  expect(exitCodeOf(report)).toBe(3);
});

test('Redis stopped, and Redis frozen: could not judge, in bounded time', async () => {
  const server = await privateRedis();
  const client = new Redis(server.url);
  await writeGate(client);
  client.disconnect();
  expect((await stores.audit({ redisUrl: server.url })).verdict).toBe('holds');
  server.kill('SIGSTOP');
  const began = performance.now();
  const frozen = await stores.audit({ redisUrl: server.url, timeoutMs: 300 });
  expect(performance.now() - began).toBeLessThan(5000);
  expect(frozen.unjudged.map(({ why }) => why)).toContain(
    `Redis at 127.0.0.1:${server.port} did not answer within 300 ms`,
  );
  server.kill('SIGCONT');
  await server.stop();
  const stopped = await stores.audit({ redisUrl: server.url });
  expect(exitCodeOf(stopped)).toBe(3);
  expect(stopped.unjudged[0]?.why).toContain('ECONNREFUSED');
});

test('Postgres frozen: could not judge, in bounded time', async () => {
  const server = await privatePostgres();
  server.kill('SIGSTOP');
  const began = performance.now();
  const report = await stores.audit({ databaseUrl: server.url, timeoutMs: 300 }).finally(() => {
    server.kill('SIGCONT');
  });
  expect(performance.now() - began).toBeLessThan(5000);
  expect(report.unjudged).toEqual([
    { what: 'the ledger', why: `Postgres at 127.0.0.1:${server.port} did not answer within 300 ms` },
  ]);
});

test('a table locked by somebody: could not judge, in bounded time', async () => {
  await stores.db.query('begin; lock table refunds in access exclusive mode');
  const report = await stores.audit({ timeoutMs: 300 }).finally(() => stores.db.query('rollback'));
  expect(exitCodeOf(report)).toBe(3);
  expect(report.unjudged[0]?.what).toBe('the ledger');
});

test.each([
  ['lost', [['DEL', key('sale')]], 'not_loaded', 'Redis lost it'],
  ['half lost', [['DEL', key('holds')]], 'not_loaded', 'Redis lost it'],
  ['without stock', [['DEL', key('stock')]], 'not_loaded', 'Redis lost it'],
  ['loading', [['HSET', key('sale'), 'state', 'loading']], 'loading', 'being loaded'],
])('a gate that is %s cannot be judged, and outranks what is broken elsewhere', async (_, commands, gate, why) => {
  for (const [name = '', ...args] of commands) await stores.redis.call(name, ...args);
  await oversell();
  const report = await stores.audit();
  expect(exitCodeOf(report)).toBe(3);
  expect(report.unjudged).toEqual([{ what: 'the gate of sale live', why: expect.stringContaining(why) as string }]);
  expect(report.sales.find(({ saleId }) => saleId === 'live')?.gate).toBe(gate);
  expect(redChecks(report)).toContain('sold_is_live_orders');
});

test('a key of the wrong type cannot be judged', async () => {
  await stores.redis.multi().del(key('buyers')).set(key('buyers'), 'x').exec();
  const report = await stores.audit();
  expect(report.unjudged).toEqual([
    { what: 'the gate of sale live', why: `${key('buyers')} is a string, not a set: every script fails on it` },
  ]);
});

test.each<[string, AuditCommandOptions, Record<string, string>, string]>([
  ['a misspelt one', {}, { AUDIT_GRACE: '5' }, 'AUDIT_GRACE is unknown'],
  ['no number', {}, { AUDIT_GRACE_MS: '5s' }, 'AUDIT_GRACE_MS=5s is wrong'],
  ['too small', {}, { AUDIT_TIMEOUT_MS: '0' }, 'AUDIT_TIMEOUT_MS=0 is wrong'],
  ['a wrong one of the product', {}, { UNQUEUED_GRACE_MS: '-1' }, 'UNQUEUED_GRACE_MS=-1 is wrong'],
  ['no ledger', {}, { DATABASE_URL: '' }, 'DATABASE_URL is not set'],
  ['a gate that is none', {}, { REDIS_URL: 'http://localhost' }, 'REDIS_URL is no address'],
  ['one of two gates that is none', {}, { REDIS_URL: 'redis://a http://b' }, 'REDIS_URL is no address'],
  ['a mode that there is not', {}, { REDIS_MODE: 'many' }, 'REDIS_MODE=many is wrong'],
  ['sentinels without a name', {}, { REDIS_MODE: 'sentinel' }, 'REDIS_SENTINEL_NAME is not set'],
  ['no certificate', {}, { REDIS_TLS_CA: '/no/such.pem' }, 'REDIS_TLS_CA: ENOENT'],
  ['no time', { settle: 'soon' }, {}, '--settle soon is wrong'],
  ['no sale', { sale: 'a b' }, {}, '--sale a b can be no sale’s id'],
  ['no file', { report: '' }, {}, '--report names no file'],
])('a setting that is wrong is refused with exit code 3: %s', async (_, options, env, why) => {
  const { code, text } = await command(options, env);
  expect(code).toBe(3);
  expect(text).toContain(why);
});

test('a setting that is right is heeded', async () => {
  await stores.redis.hset(key('holds'), young.user, hold(young, { at: Date.now() - 30_000 }));
  expect((await command({}, { AUDIT_GRACE_MS: '' })).code).toBe(0);
  expect((await command({}, { AUDIT_GRACE_MS: '20000' })).code).toBe(2);
  expect((await command({}, { AUDIT_GRACE_MS: '', UNQUEUED_GRACE_MS: '1000' })).code).toBe(2);
  expect((await command({}, { AUDIT_GRACE_MS: '600000', UNQUEUED_GRACE_MS: '1000' })).code).toBe(0);
});

test('the command prints every check, and what is broken in words, within 100 columns', async () => {
  await stores.redis.sadd(key('buyers'), ...Array.from({ length: 9 }, (_, n) => `stranger-${n}`));
  const { code, lines, text } = await command({}, { AUDIT_EXAMPLES: '2' });
  expect(code).toBe(2);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  expect(text).toMatch(/^live +open +loaded +20 +4 +14 +5 +1$/m);
  expect(text).toMatch(/^buyers_are_holders +13 +9 {2}BROKEN$/m);
  expect(text).toMatch(/^BROKEN buyers_are_holders in sale live: the rule is that who has a receipt has a hold/m);
  expect(text).toMatch(/^ {2}stranger-\d: has a receipt \(buyers\), but no hold$/m);
  expect(text).toContain('  and 7 more');
  expect(lines.at(-1)).toMatch(/^Verdict: BROKEN: 1 of \d+ checks do not hold\.$/);
});

test('the report is written whole, in place of an older one, and leaves nothing else behind', async () => {
  const report = join(folder, 'report.json');
  await writeFile(report, 'an older one');
  await oversell();
  expect((await command({ report })).code).toBe(2);
  const written = JSON.parse(await readFile(report, 'utf8')) as AuditReport;
  expect(written.verdict).toBe('broken');
  expect(redChecks(written)).toEqual(['journal_sums_to_sold', 'sold_is_live_orders']);
  expect(await readdir(folder)).toEqual(['report.json']);

  expect((await command({ report, settle: '?' })).code).toBe(3);
  expect((JSON.parse(await readFile(report, 'utf8')) as AuditReport).verdict).toBe('unjudged');
});

test('a report that cannot be written is exit 3, whatever was found', async () => {
  for (const report of [join(folder, 'nowhere', 'report.json'), folder]) {
    const { code, text } = await command({ report });
    expect(code).toBe(3);
    expect(text).toContain(`COULD NOT JUDGE the report file ${report}: not written`);
  }
  await mkdir(join(folder, 'taken'));
  await writeFile(join(folder, 'taken', 'x'), '');
  expect((await command({ report: join(folder, 'taken') })).code).toBe(3);
  expect((await readdir(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

test('the audit imports nothing of the rest, and no package but the clients of the two stores', async () => {
  const source = new URL('../../src/audit/', import.meta.url);
  const imported = new Set<string>();
  for (const file of await readdir(source)) {
    const text = await readFile(new URL(file, source), 'utf8');
    for (const [, from = ''] of text.matchAll(/(?:from|import) ?\(?'([^']+)'/g)) imported.add(from);
  }
  const foreign = [...imported].filter((from) => !/^(\.\/[a-z-]+\.ts|node:.+|pg|ioredis)$/.test(from));
  expect(imported.size).toBeGreaterThan(5);
  expect(foreign).toEqual([]);
});

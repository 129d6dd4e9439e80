/** Redis and Postgres over TLS: who shows a certificate that is trusted is spoken to, and nobody else. */
import { chownSync, copyFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { migrate } from '../../src/ledger/migrate.ts';
import { createRedis, disconnect } from '../../src/redis.ts';
import { ask, expectProblem, press, putSale, record, shortLimits, testApi, win } from '../http/api.ts';
import { recorder } from '../ledger/house.ts';
import { expectReason, flashgate } from '../process/program.ts';
import { makeCertificates, opensslIsThere, type Certificates } from '../support/certificates.ts';
import { privatePostgres, privateRedis } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';

vi.setConfig({ testTimeout: 60_000 });

describe.skipIf(!opensslIsThere)('with certificates', () => {
  let stores: Stores;
  let made: Certificates;
  beforeAll(async () => {
    stores = await freshStores();
    made = makeCertificates();
  });
  afterAll(() => stores.drop());

  test('Redis: trusted by REDIS_TLS_CA, and shown REDIS_TLS_CERT, or not spoken to', async () => {
    const { ca, cert, key, stranger } = made;
    const server = await privateRedis((port) => ({
      ...{ port: 0, 'tls-port': port, 'tls-auth-clients': 'yes' },
      ...{ 'tls-ca-cert-file': ca, 'tls-cert-file': cert, 'tls-key-file': key },
    }));
    const good = { REDIS_TLS_CA: ca, REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key };
    const env = {
      ...stores.env,
      ...shortLimits,
      REDIS_URL: server.url.replace('redis:', 'rediss:'),
      LOG_LEVEL: 'warn',
    };
    const tls = { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) };
    const api = await testApi({ ...env, ...good }, (url) => new Redis(url, { tls }));
    try {
      await api.wired.connected();
      const saleId = await putSale(api, { total: 1 });
      await record(api, await win(api, saleId, 'u'));
      const audited = await flashgate(['audit', '--sale', saleId], { ...env, ...good });
      expect(audited.code, audited.stdout).toBe(0);

      for (const bad of [{ ...good, REDIS_TLS_CA: stranger }, { ...good, REDIS_TLS_CA: '' }, { REDIS_TLS_CA: ca }]) {
        const other = await testApi({ ...env, ...bad }, (url) => new Redis(url, { tls }));
        expectProblem(await press(other, saleId, 'v'), 'gate_unavailable');
        const { redis } = (await ask(other, '/readyz')).json<{ dependencies: { redis: object } }>().dependencies;
        expect(redis).toMatchObject({ ok: false });
        await expect
          .poll(() => JSON.stringify(other.log))
          .toMatch(/certificate|alert|ECONNRESET|closed before secure/i);
        await other.close();
        expect((await flashgate(['audit', '--sale', saleId], { ...env, ...bad })).code).toBe(3);
      }
    } finally {
      await api.close();
    }
  });

  test('Redis: given up in the middle of a handshake that would have failed, and nothing else happens', async () => {
    const server = await privateRedis((port) => ({
      ...{ port: 0, 'tls-port': port, 'tls-auth-clients': 'no' },
      ...{ 'tls-ca-cert-file': made.ca, 'tls-cert-file': made.cert, 'tls-key-file': made.key },
    }));
    const REDIS_URL = server.url.replace('redis:', 'rediss:');
    const config = readConfig({ ...stores.env, REDIS_URL, REDIS_TLS_CA: made.stranger });
    const thrown: unknown[] = [];
    const note = (error: unknown) => void thrown.push(error);
    process.on('uncaughtException', note);
    for (let n = 0; n < 20; n += 1) {
      const redis = createRedis(config, recorder().logger) as Redis;
      while (!(redis as Partial<Redis>).stream) await new Promise((resolve) => process.nextTick(resolve));
      redis.stream.once('connect', () => disconnect(redis)); // of TCP
      await vi.waitUntil(() => redis.status === 'end');
    }
    process.off('uncaughtException', note);
    expect(thrown).toEqual([]);
  });

  test('a certificate that cannot be read stops the process, by name', async () => {
    const env = { ...stores.env, REDIS_URL: 'rediss://127.0.0.1:1', REDIS_TLS_CA: '/no/such/ca.pem' };
    expectReason(await flashgate(['sale', 'list'], env), /REDIS_TLS_CA: ENOENT.*\/no\/such\/ca\.pem/);
    const audited = await flashgate(['audit'], env);
    expect([audited.code, audited.stdout]).toEqual([3, expect.stringMatching(/REDIS_TLS_CA: ENOENT/)]);
  });

  test('Postgres: sslmode and sslrootcert of DATABASE_URL are heeded by migrate, the pool and the audit', async () => {
    const server = await privatePostgres();
    await switchTlsOn(server.url, made);
    const url = (changes: string, host = '127.0.0.1') => `${server.url.replace('127.0.0.1', host)}?${changes}`;
    const good = url(`sslmode=verify-full&sslrootcert=${made.ca}`);
    expect((await migrate(good)).length).toBeGreaterThan(0);
    const client = new pg.Client({ connectionString: good });
    await client.connect();
    const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
    expect(rows).toEqual([{ ssl: true }]);
    await client.end();
    const run = (command: string[], databaseUrl: string) =>
      flashgate(command, { ...stores.env, DATABASE_URL: databaseUrl, LOG_LEVEL: 'warn' });
    expect((await run(['sale', 'list'], good)).code).toBe(0);
    expect((await run(['audit'], good)).stdout).toContain('the ledger has no sale');

    for (const [bad, why] of [
      [url(`sslmode=verify-full&sslrootcert=${made.stranger}`), /unable to verify the first certificate/],
      [url('sslmode=verify-full'), /unable to verify the first certificate/],
      [url(`sslmode=verify-full&sslrootcert=${made.ca}`, 'localhost'), /Hostname\/IP does not match/],
    ] as const) {
      expectReason(await run(['migrate'], bad), why);
      expectReason(await run(['sale', 'list'], bad), why);
      const audited = await run(['audit'], bad);
      expect([audited.code, audited.stdout.replaceAll(/\s+/g, ' ')]).toEqual([3, expect.stringMatching(why)]);
    }
  });
});

/** The server's own user must be the key's owner, and nobody else may read it. */
async function switchTlsOn(url: string, { cert, key }: Certificates): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const { rows } = await admin.query<{ folder: string }>(`select current_setting('data_directory') as folder`);
  const folder = rows[0]?.folder ?? '';
  for (const [from, name] of [
    [cert, 'server.crt'],
    [key, 'server.key'],
  ] as const) {
    copyFileSync(from, join(folder, name));
    const { uid, gid } = statSync(folder);
    chownSync(join(folder, name), uid, gid);
  }
  await admin.query('alter system set ssl = on');
  await admin.query('select pg_reload_conf()');
  const isOn = async () => (await admin.query<{ ssl: string }>('show ssl')).rows[0]?.ssl;
  await vi.waitFor(async () => expect(await isOn()).toBe('on'), { timeout: 10_000 });
  await admin.end();
}

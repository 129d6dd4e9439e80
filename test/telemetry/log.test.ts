/** No secret in the log, whatever is logged. */
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig, settingNames } from '../../src/config.ts';
import { createLogger } from '../../src/log.ts';
import { freshStores, type Stores } from '../support/stores.ts';

const SECRETS = {
  SERVICE_TOKEN: 'service-token-one service-token-"two"',
  ADMIN_TOKEN: 'admin-token-of-the-test',
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 3).toString('base64')}`,
  PAYMENT_PROVIDER_TOKEN: 'provider-token-of-the-test',
  STRIPE_SECRET_KEY: `sk_test_${'k'.repeat(24)}`,
  STRIPE_WEBHOOK_SECRET: `whsec_${'w'.repeat(32)}`,
  JWT_SECRET: 'a secret of buyers tokens'.replaceAll(' ', '-').padEnd(32, '.'),
  SHOP_SESSION_SECRET: 'a secret of the sample shop'.replaceAll(' ', '-').padEnd(32, '.'),
};
/** Settings that hold a secret by their name, all of which the tests below give. */
const NAMED = settingNames.filter((name) => /TOKEN|SECRET|PASSWORD/.test(name));

const ODD = 'p@ss/word "of" postgres'; // encoded in the URL, as it is in an error

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

function logged(write: (logger: ReturnType<typeof createLogger>) => void, env: Record<string, string> = {}): string {
  const lines: string[] = [];
  const config = readConfig({ ...stores.env, ...SECRETS, ...env });
  write(createLogger({ ...config, LOG_LEVEL: 'debug' }, { write: (line) => void lines.push(line) }));
  for (const line of lines) JSON.parse(line); // still JSON, each
  expect(lines.length).toBeGreaterThan(0);
  return lines.join('');
}

test('passwords of connection strings, in fields and in the words of errors', () => {
  const url = 'postgres://shop:s3cret@db.example:5432/flashgate';
  const text = logged((logger) => {
    logger.error({ err: new Error(`cannot connect to ${url}`, { cause: new Error(`no: redis://:s3cret@r:1`) }) }, 'a');
    logger.warn({ settings: { url, nested: [{ url }] } }, `started with ${url}`);
  });
  expect(text).not.toContain('s3cret');
  expect(text).toContain('postgres://shop:[hidden]@db.example:5432/flashgate');
});

test('every secret of the settings, wherever it stands, and however it is written', () => {
  const ofRedis = ['password-of-one-node', 'password-of-the-other'] as const;
  const env = {
    DATABASE_URL: `postgres://shop:${encodeURIComponent(ODD)}@127.0.0.1:1/x`,
    REDIS_URL: `redis://:${ofRedis[0]}@127.0.0.1:1 redis://:${ofRedis[1]}@127.0.0.1:2`,
    ...{ REDIS_MODE: 'sentinel', REDIS_SENTINEL_NAME: 'm', REDIS_SENTINEL_PASSWORD: 'password-of-sentinel' },
  };
  const given = [...Object.values(SECRETS).flatMap((list) => list.split(' ')), ...ofRedis, 'password-of-sentinel'];
  const words = [...given, ODD, encodeURIComponent(ODD)];
  for (const word of words) {
    const text = logged((logger) => {
      logger.error({ err: new Error(`wrong: ${word}`), list: [word], [word]: 1 }, `it was ${word}`);
    }, env);
    expect(text).not.toContain(JSON.stringify(word).slice(1, -1));
  }
});

test('no setting that is named a secret is left out of these tests', () => {
  expect([...Object.keys(SECRETS), 'REDIS_SENTINEL_PASSWORD'].toSorted()).toEqual(NAMED.toSorted());
});

test('headers that prove who somebody is', () => {
  const headers = {
    authorization: 'Bearer abc',
    cookie: 'id=abc',
    'webhook-signature': 'v1,abc',
    'x-request-id': 'r-1',
  };
  const text = logged((logger) => {
    logger.info({ headers }, 'a');
    logger.info({ req: { headers } }, 'b');
    logger.info(headers, 'c');
  });
  expect(text).not.toContain('abc');
  expect(text.match(/r-1/g)).toHaveLength(3);
});

test('real errors of clients that were given a wrong password', async () => {
  const errors: unknown[] = [];
  const redisUrl = new URL(stores.redisUrl);
  Object.assign(redisUrl, { username: 'somebody', password: 'wrong-one' });
  const redis = new Redis(redisUrl.href, { retryStrategy: () => null, maxRetriesPerRequest: 0 });
  redis.on('error', (error) => errors.push(error));
  await redis.ping().catch((error: unknown) => errors.push(error));
  redis.disconnect();
  const databaseUrl = new URL(stores.databaseUrl);
  databaseUrl.password = 'wrong-one';
  const client = new pg.Client({ connectionString: databaseUrl.href });
  client.on('error', () => undefined);
  await client.connect().then(
    () => client.end(), // a server that trusts everybody
    (error: unknown) => errors.push(error),
  );
  expect(errors.some((error) => JSON.stringify(error).includes('wrong-one'))).toBe(true); // ioredis carries what it sent
  const text = logged((logger) => {
    for (const error of errors) logger.error({ err: error }, 'a store does not let us in');
  });
  expect(text).not.toContain('wrong-one');
  expect(text).toMatch(/WRONGPASS|invalid username-password/);
});

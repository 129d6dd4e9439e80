/** The settings: what is wrong is named, with the reason; nothing wrong is let through. */
import { describe, expect, test } from 'vitest';
import { readConfig, redisAddresses, settingNames } from '../../src/config.ts';

const NEEDED = {
  REDIS_URL: 'redis://127.0.0.1:6379',
  DATABASE_URL: 'postgres://u:p@127.0.0.1/flashgate',
  SQS_QUEUE_URL: 'http://127.0.0.1:9324/000000000000/orders',
};

const JWT = {
  ...{ AUTH_MODE: 'jwt', JWT_ALGORITHM: 'HS256', JWT_SECRET: 'x'.repeat(32) },
  ...{ JWT_AUDIENCE: 'shop', JWT_ISSUER: 'https://accounts.example' },
};

test('what is needed is enough; everything else has a default', () => {
  const config = readConfig(NEEDED);
  const unset = settingNames.filter((name) => !(name in config));
  expect(unset.sort(), 'what has no default').toEqual([
    ...['CHECKOUT_CANCEL_URL', 'CHECKOUT_SUCCESS_URL', 'JWT_ALGORITHM', 'JWT_AUDIENCE', 'JWT_ISSUER', 'JWT_JWKS_URL'],
    ...['METRICS_PORT', 'PAYMENT_PROVIDER_URL', 'SQS_ENDPOINT', 'STRIPE_API_BASE'],
  ]);
  expect(config).toMatchObject({ ...NEEDED, AUTH_MODE: 'service', SERVICE_TOKEN: [], ADMIN_TOKEN: [] });
});

test.each(Object.keys(NEEDED))('%s is needed, and empty is not set', (name) => {
  for (const value of [undefined, '']) {
    expect(() => readConfig({ ...NEEDED, [name]: value })).toThrow(`${name}: is not set`);
  }
});

test('all that is wrong is told at once', () => {
  const wrong = { PORT: '70000', GATE_BATCH: 'many', ADMIN_TOKEN: 'short' };
  for (const name of [...Object.keys(wrong), ...Object.keys(NEEDED)]) {
    expect(() => readConfig({ ...wrong })).toThrow(`  ${name}: `);
  }
});

describe('values', () => {
  test.each([
    ['PORT', '-1'],
    ['PORT', '1.5'],
    ['GATE_TIMEOUT_MS', '0'],
    ['GATE_TIMEOUT_MS', '500ms'],
    ['GATE_BATCH', '1025'],
    ['GATE_BATCH', '1e3x'],
    ['KEEPER_BATCH', '2001'],
    ['LOG_LEVEL', 'loud'],
    ['AUTH_MODE', 'None'],
    ['JWT_SECRET', 'x'.repeat(31)],
    ...['loopback', '10.0.0.0/0', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0', '::/0', '2001:db8::/129', 'true'].map(
      (value): [string, string] => ['TRUST_PROXY', value],
    ),
    ...['*', 'shop.example', 'https://shop.example/', 'https://shop.example/x', 'ftp://shop.example', 'null'].map(
      (value): [string, string] => ['CORS_ORIGINS', value],
    ),
    ['RATE_LIMIT_BUYER', '-1'],
    ['MAX_EVENT_LOOP_DELAY_MS', '-1'],
    ['HIDE_UNITS_LEFT', 'yes'],
    ['JWT_ALGORITHM', 'none'],
    ['JWT_JWKS_URL', 'ftp://accounts.example/keys'],
    ['REDIS_URL', 'http://127.0.0.1'],
    ['REDIS_URL', 'redis://a http://b'],
    ['REDIS_MODE', 'Cluster'],
    ['DATABASE_URL', '127.0.0.1'],
    ['SERVICE_TOKEN', 'fifteen-letters'],
    ['SERVICE_TOKEN', `${'x'.repeat(16)} short`],
    ['WEBHOOK_SECRET', 'x'.repeat(40)],
    ['WEBHOOK_SECRET', 'whsec_short'],
  ])('%s=%s is refused by name', (name, value) => {
    expect(() => readConfig({ ...NEEDED, [name]: value })).toThrow(`${name}: `);
  });

  test('tokens and secrets are lists, for rotation', () => {
    const [a, b] = ['a'.repeat(16), 'b'.repeat(20)];
    const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
    const config = readConfig({ ...NEEDED, SERVICE_TOKEN: ` ${a}  ${b} `, WEBHOOK_SECRET: `${secret} ${secret}` });
    expect(config.SERVICE_TOKEN).toEqual([a, b]);
    expect(config.WEBHOOK_SECRET).toEqual([secret, secret]);
  });
});

describe('relations', () => {
  test.each<[string, Record<string, string>]>([
    ['AUTH_MODE=none', { AUTH_MODE: 'none', NODE_ENV: 'production' }],
    ['AUTH_MODE=jwt needs', { AUTH_MODE: 'jwt' }],
    ['AUTH_MODE=jwt needs', { ...JWT, JWT_AUDIENCE: '' }],
    ['AUTH_MODE=jwt needs', { ...JWT, JWT_ISSUER: '' }],
    ['JWT_ALGORITHM=HS256 needs JWT_SECRET', { ...JWT, JWT_SECRET: '' }],
    ['JWT_JWKS_URL has public keys', { ...JWT, JWT_JWKS_URL: 'https://accounts.example/keys' }],
    ['JWT_JWKS_URL has public keys', { ...JWT, JWT_ALGORITHM: 'RS256', JWT_SECRET: '' }],
    ['JWT_SECRET is for', { ...JWT, JWT_ALGORITHM: 'RS256', JWT_JWKS_URL: 'https://accounts.example/keys' }],
    ['JWT_JWKS_URL must be https', { NODE_ENV: 'production', JWT_JWKS_URL: 'http://accounts.example/keys' }],
    ['RATE_LIMIT_ADDRESS is for', { RATE_LIMIT_ADDRESS: '10' }],
    ['CLIENT_TIMEOUT_MS', { CLIENT_TIMEOUT_MS: '2000' }],
    ['KEEP_ALIVE_MS', { KEEP_ALIVE_MS: '60000', BALANCER_IDLE_MS: '60000' }],
    ['GATE_TIMEOUT_MS', { GATE_TIMEOUT_MS: '2000' }],
    ['QUEUE_TIMEOUT_MS', { QUEUE_TIMEOUT_MS: '2000' }],
    ['UNQUEUED_GRACE_MS', { UNQUEUED_GRACE_MS: '2000' }],
    ['LOST_GRACE_MS', { LOST_GRACE_MS: '5000' }],
    ['QUEUE_VISIBILITY_SECONDS', { QUEUE_VISIBILITY_SECONDS: '7' }],
    ['WORKER_BATCH', { WORKER_BATCH: '161' }],
    ['WORKER_BATCH', { WORKER_RECEIVERS: '15' }],
    ['SHUTDOWN_DEADLINE_MS', { SHUTDOWN_DEADLINE_MS: '2000' }],
    ['QUEUE_WAIT_SECONDS', { QUEUE_WAIT_SECONDS: '20' }],
    ['REDIS_URL names several', { REDIS_URL: 'redis://a redis://b' }],
    ['redis:// or all with rediss://', { REDIS_URL: 'redis://a rediss://b', REDIS_MODE: 'cluster' }],
    ['has none but 0', { REDIS_URL: 'redis://a/1', REDIS_MODE: 'cluster' }],
    ['REDIS_SENTINEL_NAME', { REDIS_MODE: 'sentinel' }],
    ['REDIS_SENTINEL_NAME', { REDIS_SENTINEL_NAME: 'x' }],
    ['REDIS_TLS_CA', { REDIS_TLS_CA: '/ca.pem' }],
    ['REDIS_TLS_KEY go together', { REDIS_URL: 'rediss://a', REDIS_TLS_CERT: '/c.pem' }],
  ])('%s is checked against what it must fit', (name, settings) => {
    expect(() => readConfig({ ...NEEDED, ...settings })).toThrow(new RegExp(`do not fit together:\\n.*${name}`));
  });

  test('several addresses, each mode', () => {
    const several = 'rediss://:secret@a:1 \n rediss://b:2';
    const cluster = readConfig({ ...NEEDED, REDIS_URL: several, REDIS_MODE: 'cluster', REDIS_TLS_CA: '/ca.pem' });
    expect(redisAddresses(cluster).map(({ host }) => host)).toEqual(['a:1', 'b:2']);
    const more = { REDIS_MODE: 'sentinel', REDIS_SENTINEL_NAME: 'x' };
    expect(readConfig({ ...NEEDED, REDIS_URL: several, ...more }).REDIS_MODE).toBe('sentinel');
  });

  test('AUTH_MODE=jwt with a secret, or with public keys', () => {
    expect(readConfig({ ...NEEDED, ...JWT })).toMatchObject({ AUTH_MODE: 'jwt', JWT_SECRET: [JWT.JWT_SECRET] });
    const keys = { JWT_ALGORITHM: 'ES256', JWT_SECRET: '', JWT_JWKS_URL: 'https://accounts.example/keys' };
    expect(readConfig({ ...NEEDED, ...JWT, ...keys, NODE_ENV: 'production' })).toMatchObject({
      JWT_ALGORITHM: 'ES256',
    });
  });

  test('proxies and origins are lists', () => {
    const env = {
      ...NEEDED,
      TRUST_PROXY: '10.0.0.7 10.1.0.0/16 2001:db8::/32',
      CORS_ORIGINS: 'https://a.example http://b:8080',
    };
    expect(readConfig(env)).toMatchObject({
      TRUST_PROXY: ['10.0.0.7', '10.1.0.0/16', '2001:db8::/32'],
      CORS_ORIGINS: ['https://a.example', 'http://b:8080'],
    });
  });

  test('AUTH_MODE=none is for development', () => {
    expect(readConfig({ ...NEEDED, AUTH_MODE: 'none' }).AUTH_MODE).toBe('none');
  });
});

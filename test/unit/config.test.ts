/** The settings: what is wrong is named, with the reason; nothing wrong is let through. */
import { describe, expect, test } from 'vitest';
import { readConfig, settingNames } from '../../src/config.ts';

const NEEDED = {
  REDIS_URL: 'redis://127.0.0.1:6379',
  DATABASE_URL: 'postgres://u:p@127.0.0.1/flashgate',
  SQS_QUEUE_URL: 'http://127.0.0.1:9324/000000000000/orders',
};

test('what is needed is enough; everything else has a default', () => {
  const config = readConfig(NEEDED);
  const unset = settingNames.filter((name) => !(name in config));
  expect(unset.sort(), 'what has no default').toEqual([
    ...['CHECKOUT_CANCEL_URL', 'CHECKOUT_SUCCESS_URL', 'METRICS_PORT', 'PAYMENT_PROVIDER_URL'],
    ...['SQS_ENDPOINT', 'STRIPE_API_BASE'],
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
    ['REDIS_URL', 'http://127.0.0.1'],
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
    ['KEEP_ALIVE_MS', { KEEP_ALIVE_MS: '60000', BALANCER_IDLE_MS: '60000' }],
    ['GATE_TIMEOUT_MS', { GATE_TIMEOUT_MS: '2000' }],
    ['QUEUE_TIMEOUT_MS', { QUEUE_TIMEOUT_MS: '2000' }],
    ['UNQUEUED_GRACE_MS', { UNQUEUED_GRACE_MS: '2000' }],
    ['LOST_GRACE_MS', { LOST_GRACE_MS: '5000' }],
    ['QUEUE_VISIBILITY_SECONDS', { QUEUE_VISIBILITY_SECONDS: '7' }],
    ['SHUTDOWN_DEADLINE_MS', { SHUTDOWN_DEADLINE_MS: '2000' }],
    ['QUEUE_WAIT_SECONDS', { QUEUE_WAIT_SECONDS: '20' }],
  ])('%s is checked against what it must fit', (name, settings) => {
    expect(() => readConfig({ ...NEEDED, ...settings })).toThrow(new RegExp(`do not fit together:\\n.*${name}`));
  });

  test('AUTH_MODE=none is for development', () => {
    expect(readConfig({ ...NEEDED, AUTH_MODE: 'none' }).AUTH_MODE).toBe('none');
  });
});

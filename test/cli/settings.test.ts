/** A wrong setting stops the process and says which one and why; so does a pair that does not fit together. */
import { expect, test, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { expectReason, flashgate } from '../process/program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

const good = {
  REDIS_URL: 'redis://127.0.0.1:1',
  DATABASE_URL: 'postgres://x@127.0.0.1:1/x',
  SQS_QUEUE_URL: 'http://127.0.0.1:1/000000000000/q',
};

const wrong: [name: string, values: string[]][] = [
  ['REDIS_URL', ['', '  ', '127.0.0.1:6379', 'http://127.0.0.1', 'not an address']],
  ['DATABASE_URL', ['', 'mysql://x/x', 'x']],
  ['SQS_QUEUE_URL', ['', 'sqs://x', 'my-queue']],
  ['SQS_ENDPOINT', ['x', 'ftp://x']],
  ['PAYMENT_PROVIDER_URL', ['x', 'file:///etc/passwd']],
  ['PAYMENT_PROVIDER', ['paypal', 'Stripe']],
  ['STRIPE_SECRET_KEY', ['pk_test_12345678', 'sk_12345678', `sk_test_12345678 sk_live_12345678`]],
  ['STRIPE_WEBHOOK_SECRET', ['secret', 'whsec_12345678 cut']],
  ['CHECKOUT_SUCCESS_URL', ['shop/thanks', 'javascript:alert(1)']],
  ['PORT', ['x', '-1', '65536', '1.5', '3000 ; rm', '8o8o']],
  ['LOG_LEVEL', ['loud', 'INFO']],
  ['AUTH_MODE', ['open', 'None']],
  ['SERVICE_TOKEN', ['short', 'long-enough-for-a-token short']],
  ['ADMIN_TOKEN', ['short']],
  ['WEBHOOK_SECRET', ['short', 'whsec_', 'whsec_c2hvcnQ=', `whsec_${'a'.repeat(33)}`, `whsec_${'a'.repeat(40)}!`]],
  ['WEBHOOK_SECRET', [`whsec_${'a'.repeat(32)} whsec_cut`, 'a'.repeat(40)]],
  ['REQUEST_DEADLINE_MS', ['0', '-1', 'x', '1e309', 'Infinity', '86400001', '2s']],
  ['GATE_BATCH', ['0', '1025', '1.5']],
  ['QUEUE_WAIT_SECONDS', ['-1', '21']],
  ['SHUTDOWN_DELAY_MS', ['-1', '60001']],
  ['DB_POOL', ['0', '1001']],
  ['KEEPER_BATCH', ['0', '2001']],
];
test.each(wrong)('%s: %j are each refused, by name', (name, values) => {
  for (const value of values) {
    let reason = '';
    try {
      readConfig({ ...good, [name]: value });
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
    expect(reason, `${name}=${value}`).toMatch(new RegExp(`^  ${name}: .+`, 'm'));
  }
});

const stripe = {
  PAYMENT_PROVIDER: 'stripe',
  STRIPE_SECRET_KEY: 'sk_test_12345678',
  CHECKOUT_SUCCESS_URL: 'https://shop.example/thanks',
  CHECKOUT_CANCEL_URL: 'https://shop.example/basket',
};
test('Stripe with what it needs', () => {
  expect(readConfig({ ...good, ...stripe })).toMatchObject({ STRIPE_SECRET_KEY: ['sk_test_12345678'] });
});

const unfit: [string, Record<string, string>, RegExp][] = [
  ['open to anybody in production', { AUTH_MODE: 'none', NODE_ENV: 'production' }, /AUTH_MODE=none/],
  ['keep-alive shorter than the balancer’s', { KEEP_ALIVE_MS: '60000' }, /KEEP_ALIVE_MS must be longer/],
  ['no time for the gate', { GATE_TIMEOUT_MS: '2000' }, /GATE_TIMEOUT_MS/],
  ['no time for the queue', { QUEUE_TIMEOUT_MS: '2000' }, /QUEUE_TIMEOUT_MS/],
  ['a grace within the deadline', { UNQUEUED_GRACE_MS: '2000' }, /UNQUEUED_GRACE_MS must be longer/],
  ['a lease that two failures lose', { LEASE_TTL_MS: '3000' }, /LEASE_TTL_MS must be longer/],
  ['lost before it is sent again', { LOST_GRACE_MS: '5000' }, /LOST_GRACE_MS must be longer/],
  ['visible while it is recorded', { QUEUE_VISIBILITY_SECONDS: '7' }, /QUEUE_VISIBILITY_SECONDS must be longer/],
  [
    'more orders than come',
    { WORKER_RECEIVERS: '2', WORKER_BATCH: '21' },
    /WORKER_BATCH must be no more than ten times/,
  ],
  ['no time to stop', { SHUTDOWN_DELAY_MS: '13000' }, /SHUTDOWN_DEADLINE_MS must be longer than SHUTDOWN_DELAY_MS/],
  ...Object.keys(stripe)
    .slice(1)
    .map((name): (typeof unfit)[number] => [
      `Stripe without ${name}`,
      { ...stripe, [name]: '' },
      /PAYMENT_PROVIDER=stripe needs/,
    ]),
  ['two providers', { ...stripe, PAYMENT_PROVIDER_URL: 'http://127.0.0.1:1' }, /PAYMENT_PROVIDER_URL is of/],
  ['a poll beyond the end', { QUEUE_WAIT_SECONDS: '15' }, /SHUTDOWN_DEADLINE_MS must be longer than QUEUE_WAIT/],
];
test.each(unfit)('%s: refused, with the reason', (_, changes, reason) => {
  expect(() => readConfig({ ...good, ...changes })).toThrow(reason);
});

test('an empty value, or one of spaces, counts as not set', () => {
  expect(readConfig({ ...good, PORT: '', SHUTDOWN_DELAY_MS: '  ', SQS_ENDPOINT: '' })).toMatchObject({
    PORT: 3000,
    SHUTDOWN_DELAY_MS: 0,
    SERVICE_TOKEN: [],
  });
});

test('lists are split at any white space', () => {
  const { SERVICE_TOKEN } = readConfig({ ...good, SERVICE_TOKEN: ' token-number-one-xx \n\ttoken-number-two-xx ' });
  expect(SERVICE_TOKEN).toEqual(['token-number-one-xx', 'token-number-two-xx']);
});

test.each([['serve'], ['work'], ['keep'], ['migrate'], ['sweep', '--once'], ['sale', 'list'], ['up']])(
  '%s: exit 1, all that is wrong at once, no stack trace',
  async (...args) => {
    const ended = await flashgate(args, { PORT: 'x', REDIS_URL: 'http://x', GATE_BATCH: '0' });
    expectReason(ended, /^flashgate: Settings that cannot be used/);
    for (const name of ['PORT', 'REDIS_URL', 'GATE_BATCH', 'DATABASE_URL: is not set', 'SQS_QUEUE_URL: is not set']) {
      expect(ended.stderr).toContain(`  ${name}`);
    }
    expect(ended.stdout).toBe('');
  },
);

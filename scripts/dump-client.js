// Writes src/client/openapi.d.ts anew: the client's types, from the document that the API serves. A test compares them.
// Usage, after `npm test` or another command that does the set-up: node_modules/node/bin/node scripts/dump-client.js
import { writeFileSync } from 'node:fs';
import { readConfig } from '../src/config.ts';
import { buildApp } from '../src/http/app.ts';
import { createLogger, wire } from '../src/wiring.ts';
import { clientTypes, TYPES } from './lib/client-types.js';

// The document does not depend on the stores: nobody is asked for anything, and nobody listens there.
const NOWHERE = '127.0.0.1:9';
const config = readConfig({
  ...{
    REDIS_URL: `redis://${NOWHERE}`,
    DATABASE_URL: `postgres://${NOWHERE}/none`,
    SQS_QUEUE_URL: `http://${NOWHERE}/none`,
  },
  ...{ SERVICE_TOKEN: 'x'.repeat(16), ADMIN_TOKEN: 'x'.repeat(16) },
  // With all the routes that there can be.
  ...{
    PAYMENT_PROVIDER: 'stripe',
    STRIPE_SECRET_KEY: `sk_test_${'x'.repeat(8)}`,
    STRIPE_WEBHOOK_SECRET: 'whsec_xxxxxxxx',
  },
  ...{ CHECKOUT_SUCCESS_URL: `http://${NOWHERE}`, CHECKOUT_CANCEL_URL: `http://${NOWHERE}` },
  ...{ WEBHOOK_SECRET: `whsec_${Buffer.alloc(24).toString('base64')}`, LOG_LEVEL: 'silent' },
});
const wired = wire(config, createLogger(config));
const { app } = await buildApp({ ...wired, config });
try {
  await app.ready();
  writeFileSync(TYPES, await clientTypes(app.swagger()));
} finally {
  await app.close();
  await wired.close();
}

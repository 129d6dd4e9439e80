/** A logical Redis database for a test file, gone when the file ends. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';

/** @returns the client, once `beforeAll` has run */
export function ownRedis(): { client: Redis } {
  let stores: Stores | undefined;
  const own = {} as { client: Redis };
  beforeAll(async () => {
    stores = await freshStores();
    own.client = new Redis(stores.redisUrl);
  });
  afterAll(async () => {
    own.client.disconnect();
    await stores?.drop();
  });
  return own;
}

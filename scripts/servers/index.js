// The local servers one by one, for tests that must kill, freeze or flush theirs (test/support/servers.ts).
export { startPostgres } from './postgres.js';
export { createQueues, deleteQueues, startQueue } from './queue.js';
export { startRedis, startSentinel } from './redis.js';
export { findRedis } from './redis-program.js';
export { freePort } from './server.js';

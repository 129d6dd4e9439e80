/**
 * The plain gate: one EVALSHA per request, atomic, no batch of its own and no memory in the process. The client gathers
 * the calls of one turn of the event loop into one write (ioredis' auto-pipelining), which is the kindest way to do it.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { serveDecisions, type Decision } from './route.ts';

const RESERVE = `
  local hold = redis.call('HGET', KEYS[2], ARGV[1])
  if hold then return { 'dup', hold } end
  if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[2]) then return { 'sold_out' } end
  redis.call('DECRBY', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
  return { 'ok', ARGV[3] }`;

const AMOUNT = 49_900;
const HOLD_MS = 600_000;

const redis = new Redis(process.env['REDIS_URL'] ?? '', {
  enableAutoPipelining: true,
  scripts: { reserve: { lua: RESERVE, numberOfKeys: 2 } },
}) as Redis & { reserve: (...args: (string | number)[]) => Promise<[Decision & string, string]> };

await serveDecisions(
  async ({ saleId, userId, qty }) => {
    const keys = [`{peer:${saleId}}:stock`, `{peer:${saleId}}:holds`];
    const [outcome, hold] = await redis.reserve(...keys, userId, qty, `${randomUUID()}|${qty}|${Date.now()}`);
    if (outcome === 'sold_out') return outcome;
    const [reservationId = '', units, at] = hold.split('|');
    const [reservedAt, expiresAt] = [new Date(Number(at)), new Date(Number(at) + HOLD_MS)];
    const order = { reservationId, qty: Number(units), amount: AMOUNT * Number(units), reservedAt, expiresAt };
    return { outcome: outcome as 'ok' | 'dup', order };
  },
  () => redis.quit(),
);

/**
 * The plain gate: one EVALSHA per request, atomic, no batch of its own and no memory in the process. The client gathers
 * the calls of one turn of the event loop into one write (ioredis' auto-pipelining), which is the kindest way to do it.
 */
import { Redis } from 'ioredis';
import { plainArgs, plainKeys, RESERVE } from './redis-script.ts';
import { serveDecisions, type Decision } from './route.ts';

const AMOUNT = 49_900;
const HOLD_MS = 600_000;

const redis = new Redis(process.env['REDIS_URL'] ?? '', {
  enableAutoPipelining: true,
  scripts: { reserve: { lua: RESERVE, numberOfKeys: 2 } },
}) as Redis & { reserve: (...args: (string | number)[]) => Promise<[Decision & string, string]> };

await serveDecisions(
  async ({ saleId, userId, qty }) => {
    const [outcome, hold] = await redis.reserve(...plainKeys(saleId), ...plainArgs(userId, qty));
    if (outcome === 'sold_out') return outcome;
    const [reservationId = '', units, at] = hold.split('|');
    const [reservedAt, expiresAt] = [new Date(Number(at)), new Date(Number(at) + HOLD_MS)];
    const order = { reservationId, qty: Number(units), amount: AMOUNT * Number(units), reservedAt, expiresAt };
    return { outcome: outcome as 'ok' | 'dup', order };
  },
  { close: () => redis.quit() },
);

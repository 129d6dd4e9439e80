/** The plain gate's script, apart from its server so that the bench can call it by itself too. */
import { randomUUID } from 'node:crypto';

/** KEYS: {@link plainKeys}. ARGV: {@link plainArgs}. Reply: `ok` or `dup` and the hold, or `sold_out`. */
export const RESERVE = `
  local hold = redis.call('HGET', KEYS[2], ARGV[1])
  if hold then return { 'dup', hold } end
  if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[2]) then return { 'sold_out' } end
  redis.call('DECRBY', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
  return { 'ok', ARGV[3] }`;

/** The units left, an integer; and a hash of holds by buyer. */
export const plainKeys = (saleId: string) => [`{peer:${saleId}}:stock`, `{peer:${saleId}}:holds`] as const;

/** Buyer, quantity, and the hold if they win: reservation id, quantity and time (epoch milliseconds), `|` between. */
export const plainArgs = (userId: string, qty: number) =>
  [userId, qty, `${randomUUID()}|${qty}|${Date.now()}`] as const;

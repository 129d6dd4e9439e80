-- open: loads a sale's gate from the ledger in three steps. Until the last one buyers are told that it is loading.
-- A live gate is never overwritten, and an older token never undoes a newer one's work.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 'begin', 2 token
--       1 'chunk', 2 token, then per live order: buyer, hold
--       1 'open', 2 token, 3 settings (their version), 4 state, 5 startsAt (ms), 6 endsAt (ms), 7 total,
--         8 maxPerReservation, 9 holdSeconds, 10 amount (price of one), 11 currency
-- Reply begin: 'begun' (what was half-loaded before is gone), 'live' (there is a gate, nothing was done), 'stale'
--       chunk: 'added' (a buyer who was in an earlier chunk gets this hold instead), 'stale'
--       open:  'opened' (also when this token opened it before), 'stale'

check_types()
local step, token = ARGV[1], tonumber(ARGV[2])
local s = redis.call('HMGET', SALE, 'state', 'held', 'token')
local known = tonumber(s[3] or '0')
local here = presence(s[1], s[2], redis.call('GET', STOCK))

if step == 'begin' then
  if here == 'loaded' then return 'live' end
  if token < known then return 'stale' end
  redis.call('UNLINK', STOCK, BUYERS, HOLDS, UNQUEUED, SALE)
  redis.call('HSET', SALE, 'state', 'loading', 'token', ARGV[2], 'generation', ARGV[2], 'version', 0,
    'held', 0, 'forfeited', 0)
  return 'begun'
end

if token ~= known then return 'stale' end
if step == 'open' and here == 'loaded' then return 'opened' end
if here ~= 'loading' then return 'stale' end

if step == 'chunk' then
  local units, last = 0, {}
  for i = 3, #ARGV, 2 do
    local buyer, hold = ARGV[i], ARGV[i + 1]
    local before = last[buyer] or redis.call('HGET', HOLDS, buyer)
    units = units + hold_qty(hold) - (before and hold_qty(before) or 0)
    last[buyer] = hold
  end
  for buyer, hold in pairs(last) do
    redis.call('SADD', BUYERS, buyer)
    redis.call('HSET', HOLDS, buyer, hold)
  end
  redis.call('HINCRBY', SALE, 'held', int(units))
  return 'added'
end

redis.call('SET', STOCK, int(tonumber(ARGV[7]) - tonumber(s[2])))
redis.call('HSET', SALE, 'settings', ARGV[3], 'state', ARGV[4], 'startsAt', ARGV[5], 'endsAt', ARGV[6],
  'total', ARGV[7], 'maxPerReservation', ARGV[8], 'holdSeconds', ARGV[9], 'amount', ARGV[10], 'currency', ARGV[11])
return 'opened'

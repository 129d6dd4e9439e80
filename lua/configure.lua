-- configure: applies a sale's settings to new holds. Holds that exist keep what they were promised.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 token or '', 2 settings (their version), 3 state, 4 startsAt (ms), 5 endsAt (ms), 6 total,
--       7 maxPerReservation, 8 holdSeconds, 9 amount (price of one), 10 currency,
--       11 'ask', or 'decided': the ledger has these settings already (the gate may have forgotten them, and held more
--          since), so they are not refused; the stock may go below zero, which buyers see as none left
-- Reply { 'not_loaded' | 'loading' | 'stale' }, { 'older', version } (the gate has newer settings),
--       { 'total_too_low', held + forfeited }, { 'currency_fixed' }, or { 'applied' } (also when it has this version,
--       which is written again if the ledger has decided: under this number the gate may have what one asked that died
--       before the ledger had it)
-- Moves total and stock by the same difference.

check_types()
local here = presence_now()
if here ~= 'loaded' then return { here } end
if fenced(ARGV[1]) then return { 'stale' } end

local s = redis.call('HMGET', SALE, 'settings', 'total', 'held', 'forfeited', 'currency')
local known, version = tonumber(s[1]), tonumber(ARGV[2])
if version < known then return { 'older', known } end
if version == known and ARGV[11] ~= 'decided' then return { 'applied' } end

local total, taken = tonumber(ARGV[6]), tonumber(s[3]) + tonumber(s[4])
local grows_by = total - tonumber(s[2])
if ARGV[11] ~= 'decided' then
  if grows_by < 0 and total < taken then return { 'total_too_low', taken } end
  if taken > 0 and ARGV[10] ~= s[5] then return { 'currency_fixed' } end
end

even_when_full() -- a sale can be paused then
redis.call('HSET', SALE, 'settings', ARGV[2], 'state', ARGV[3], 'startsAt', ARGV[4], 'endsAt', ARGV[5],
  'total', ARGV[6], 'maxPerReservation', ARGV[7], 'holdSeconds', ARGV[8], 'amount', ARGV[9], 'currency', ARGV[10])
redis.call('INCRBY', STOCK, int(grows_by))
return { 'applied' }

-- settle: after a full pass that found nothing missing, what was forfeited when the pass began is free after all.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 token or '', 2 generation in which the pass began, 3 units that were forfeited then
-- Reply { 'not_loaded' | 'loading' | 'stale' }, { 'changed' } (another generation, or fewer forfeited by now),
--       or { 'settled', units }
-- Moves forfeited -> stock.

check_types()
local here = presence_now()
if here ~= 'loaded' then return { here } end
if fenced(ARGV[1]) then return { 'stale' } end

local s = redis.call('HMGET', SALE, 'generation', 'forfeited')
local units = tonumber(ARGV[3])
if s[1] ~= ARGV[2] or tonumber(s[2]) < units then return { 'changed' } end
if units > 0 then
  redis.call('INCRBY', STOCK, int(units))
  redis.call('HINCRBY', SALE, 'forfeited', int(-units))
  redis.call('HINCRBY', SALE, 'version', 1)
end
return { 'settled', units }

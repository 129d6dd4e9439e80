-- release: gives the units of finished holds back to the stock, each exactly once.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 token or '', then per hold: buyer, reservation id
-- Reply { 'not_loaded' | 'loading' | 'stale' } or { 'loaded', one of 'released' | 'not_held' per hold ... }
-- Moves held -> stock.

check_types()
local here = presence_now()
if here ~= 'loaded' then return { here } end
if fenced(ARGV[1]) then return { 'stale' } end

local units, reply = take_holds(2, 'released')
if units > 0 then redis.call('INCRBY', STOCK, int(units)) end
return reply

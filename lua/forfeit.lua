-- forfeit: takes holds away without giving units to the stock: the gate had promised what the ledger does not have.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 token or '', then per hold: buyer, reservation id
-- Reply { 'not_loaded' | 'loading' | 'stale' } or { 'loaded', one of 'forfeited' | 'not_held' per hold ... }
-- Moves held -> forfeited.

check_types()
local here = presence_now()
if here ~= 'loaded' then return { here } end
if fenced(ARGV[1]) then return { 'stale' } end

local units, reply = take_holds(2, 'forfeited')
if units > 0 then redis.call('HINCRBY', SALE, 'forfeited', int(units)) end
return reply

-- adopt: writes the holds of live orders that the gate forgot. The stock may go below zero: the units are owned,
-- whatever the gate had come to believe; buyers see that as none left.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 token or '', then per order: buyer, hold
-- Reply { 'not_loaded' | 'loading' | 'stale' } or { 'loaded', one of 'adopted' | 'held' | 'other' per order ... }
--       held: the gate has it already. other: the buyer has another hold, which must end first.
-- Moves forfeited -> held while there are any forfeited, then stock -> held.

check_types()
local here = presence_now()
if here ~= 'loaded' then return { here } end
if fenced(ARGV[1]) then return { 'stale' } end

local reply, adopted, new_holds, units = { 'loaded' }, {}, {}, 0
local seen = {}
for i = 2, #ARGV, 2 do
  local buyer, hold = ARGV[i], ARGV[i + 1]
  local found = seen[buyer] or redis.call('HGET', HOLDS, buyer)
  if found then
    reply[#reply + 1] = hold_id(found) == hold_id(hold) and 'held' or 'other'
  else
    seen[buyer] = hold
    units = units + hold_qty(hold)
    adopted[#adopted + 1] = buyer
    new_holds[#new_holds + 1] = buyer
    new_holds[#new_holds + 1] = hold
    reply[#reply + 1] = 'adopted'
  end
end
if units > 0 then
  local forfeited = tonumber(redis.call('HGET', SALE, 'forfeited'))
  local from_forfeited = math.min(forfeited, units)
  redis.call('SADD', BUYERS, unpack(adopted))
  redis.call('HSET', HOLDS, unpack(new_holds))
  redis.call('HINCRBY', SALE, 'forfeited', int(-from_forfeited))
  redis.call('DECRBY', STOCK, int(units - from_forfeited))
  redis.call('HINCRBY', SALE, 'held', int(units))
  redis.call('HINCRBY', SALE, 'version', 1)
end
return reply

-- queued: takes the mark off holds that the queue now has.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  per hold: buyer, reservation id
-- Reply how many marks were taken off. A mark of another reservation (the buyer holds anew) stays.

check_types()
local sent = {}
for i = 1, #ARGV, 2 do
  local hold = redis.call('HGET', HOLDS, ARGV[i])
  if hold and hold_id(hold) == ARGV[i + 1] then sent[#sent + 1] = ARGV[i] end
end
if #sent == 0 then return 0 end
return redis.call('ZREM', UNQUEUED, unpack(sent))

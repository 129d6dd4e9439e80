-- unqueued: hands out holds whose mark is older than the grace, to be sent to the queue again, and dates their mark
-- anew, so that each is sent at most once per grace however many keepers ask.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 token or '', 2 grace in milliseconds, 3 how many at most
-- Reply { 'not_loaded' | 'loading' | 'stale' } or { 'loaded', buyer, hold, buyer, hold ... }

check_types()
local here = presence_now()
if here ~= 'loaded' then return { here } end
if fenced(ARGV[1]) then return { 'stale' } end

local now = now_ms()
local reply = { 'loaded' }
local due = redis.call('ZRANGEBYSCORE', UNQUEUED, '-inf', int(now - tonumber(ARGV[2])), 'LIMIT', 0, ARGV[3])
if #due > 0 then even_when_full() end
for _, buyer in ipairs(due) do
  local hold = redis.call('HGET', HOLDS, buyer)
  if hold then
    redis.call('ZADD', UNQUEUED, 'XX', int(now), buyer)
    reply[#reply + 1] = buyer
    reply[#reply + 1] = hold
  else
    redis.call('ZREM', UNQUEUED, buyer)
  end
end
return reply

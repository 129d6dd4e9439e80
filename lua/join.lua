-- join: says that a keeper is alive, and counts those that are, so that each takes its share of the shards.
--
-- KEYS  1 lease:keepers (sorted set: nonce by the time until which it counts as alive)
-- ARGV  1 the keeper's nonce, 2 time to live in milliseconds (0: it leaves)
-- Reply how many keepers are alive

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if ARGV[2] == '0' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('ZCARD', KEYS[1])

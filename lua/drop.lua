-- drop: gives a lease back, only by its owner.
--
-- KEYS  1 lease:shard:N
-- ARGV  1 the owner's nonce
-- Reply 1 when it was given back, 0 when the lease is gone or somebody else's

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])

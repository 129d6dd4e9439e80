-- renew: prolongs a lease, only for its owner.
--
-- KEYS  1 lease:shard:N
-- ARGV  1 the owner's nonce, 2 time to live in milliseconds
-- Reply 1 when it was prolonged, 0 when the lease is gone or somebody else's

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

-- common: prepended to every gate script by src/gate/scripts.ts; not a script by itself.
--
-- KEYS, the same five for every gate script, all of one sale ({sale:ID} is the hash tag):
--   1 stock (integer), 2 buyers (set), 3 holds (hash: buyer -> reservationId|qty|reservedAt|expiresAt|amount|currency),
--   4 unqueued (sorted set: buyer by time), 5 sale (hash)
-- Every script keeps stock + held + forfeited = total, and reads (which checks a key's type) before its first write,
-- since an error in mid-script undoes nothing.

local STOCK, BUYERS, HOLDS, UNQUEUED, SALE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local ID_LENGTH = 36 -- a reservation id is a UUID, the first field of a hold

-- Epoch milliseconds by Redis' own clock: the only clock that decides at the gate.
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- Lua's own tostring keeps 14 digits only. Adding 0 turns Lua's -0, which Redis takes for no integer, into 0.
local function int(n)
  return string.format('%.0f', n + 0)
end

local function check_types()
  local expected = { 'string', 'set', 'hash', 'zset', 'hash' }
  for i = 1, 5 do
    local found = redis.call('TYPE', KEYS[i]).ok
    if found ~= 'none' and found ~= expected[i] then
      error('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. found .. ', not a ' .. expected[i])
    end
  end
end

-- 'loaded', 'loading' or 'not_loaded'. Redis has no empty set or hash, so a sale without holds has no keys for them;
-- but held > 0 without them is a gate that lost something.
local function presence(state, held, stock)
  if not state then return 'not_loaded' end
  if state == 'loading' then return 'loading' end
  if not held or not string.match(stock or '', '^-?%d+$') then return 'not_loaded' end
  if tonumber(held) > 0 and redis.call('EXISTS', BUYERS, HOLDS) < 2 then return 'not_loaded' end
  return 'loaded'
end

local function presence_now()
  local s = redis.call('HMGET', SALE, 'state', 'held')
  return presence(s[1], s[2], redis.call('GET', STOCK))
end

-- When memory is short, Redis refuses a script whose first write may need some, but lets pass what follows a write. For
-- scripts that need no memory to speak of, and are wanted most just then.
local function even_when_full()
  redis.call('HDEL', SALE, '')
end

-- A token older than the sale's is a keeper that lost its lease; '' is a caller that needs none.
-- A newer one is remembered, so that from here on the older one is refused.
local function fenced(token)
  if token == '' then return false end
  local known = tonumber(redis.call('HGET', SALE, 'token') or '0')
  if tonumber(token) < known then return true end
  if tonumber(token) > known then
    even_when_full()
    redis.call('HSET', SALE, 'token', token)
  end
  return false
end

local function hold_id(hold)
  return string.sub(hold, 1, ID_LENGTH)
end

local function hold_qty(hold)
  return tonumber(string.match(hold, '^[^|]+|(%d+)|'))
end

-- Takes away the holds named by ARGV[first], ARGV[first + 1], ... (buyer, reservation id), each only if the buyer's
-- receipt is that reservation's: by buyer alone, a late second release of an old hold would give back the units of
-- the buyer's new one. Answers the units taken and the reply: 'loaded' and, per pair, `word` or 'not_held'.
local function take_holds(first, word)
  local reply, gone, seen, units = { 'loaded' }, {}, {}, 0
  for i = first, #ARGV, 2 do
    local buyer, id = ARGV[i], ARGV[i + 1]
    local hold = redis.call('HGET', HOLDS, buyer)
    if hold and not seen[buyer] and hold_id(hold) == id and redis.call('SISMEMBER', BUYERS, buyer) == 1 then
      units = units + hold_qty(hold)
      seen[buyer] = true
      gone[#gone + 1] = buyer
      reply[#reply + 1] = word
    else
      reply[#reply + 1] = 'not_held'
    end
  end
  if #gone > 0 then
    redis.call('SREM', BUYERS, unpack(gone))
    redis.call('HDEL', HOLDS, unpack(gone))
    redis.call('ZREM', UNQUEUED, unpack(gone))
    redis.call('HINCRBY', SALE, 'held', int(-units))
    redis.call('HINCRBY', SALE, 'version', 1)
  end
  return units, reply
end

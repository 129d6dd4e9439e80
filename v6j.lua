-- reserve: decides a batch of buyers in the order in which they came. One buyer is a batch of one.
--
-- KEYS  1 stock, 2 buyers, 3 holds, 4 unqueued, 5 sale
-- ARGV  1 batch id, echoed so that a reply can be told to be this call's
--       2 reservation ids, one right after the other (minted by the caller: the same id again takes nothing)
--       3 quantity that all want, or quantities separated by commas
--       then per buyer: user id
-- Reply { batch id, 'not_loaded' | 'loading' }, or
--       { batch id, 'loaded', now (ms), stock after, generation, version, one entry per buyer ... } with an entry of
--         hold, which begins with the reservation id: won; or asked again with the same reservation id
--         'dup|' .. hold           already holds, and the hold is in the queue
--         'dup_unqueued|' .. hold  already holds, and the hold must be sent first
--         'paused' | 'not_started' | 'ended' | 'qty_over_limit' | 'sold_out'
--       Precedence: not_loaded, dup, paused, not_started, ended, qty_over_limit, sold_out, ok.
-- Moves stock -> held.

local s = redis.call('HMGET', SALE, 'state', 'held', 'startsAt', 'endsAt', 'maxPerReservation', 'holdSeconds',
  'amount', 'currency', 'generation', 'version')
local stock = redis.call('GET', STOCK)
local here = presence(s[1], s[2], stock)
if here ~= 'loaded' then return { ARGV[1], here } end

local now = now_ms()
local shut = false
if s[1] == 'paused' then shut = 'paused'
elseif now < tonumber(s[3]) then shut = 'not_started'
elseif s[1] ~= 'open' or now >= tonumber(s[4]) then shut = 'ended' end

local max, price, currency = tonumber(s[5]), tonumber(s[7]), s[8]
local left = tonumber(stock)
local at = int(now)
local times = '|' .. at .. '|' .. int(now + tonumber(s[6]) * 1000) .. '|'
local terms = {} -- by quantity: what is promised, all but the id

-- Columns, not an argument for each value: taking those in would cost a refusal more than all the rest of it.
local users = { unpack(ARGV, 4) }
local count = #users
local ids, same_qty, quantities = ARGV[2], tonumber(ARGV[3]), {}
if not same_qty then
  for qty in string.gmatch(ARGV[3], '%d+') do quantities[#quantities + 1] = tonumber(qty) end
end
if #ids ~= count * ID_LENGTH or not same_qty and #quantities ~= count then
  error('reserve: ' .. count .. ' buyers, but ids or quantities for more or fewer')
end
local function id_of(n)
  return string.sub(ids, (n - 1) * ID_LENGTH + 1, n * ID_LENGTH)
end
local holds_already = redis.call('SMISMEMBER', BUYERS, unpack(users))

local reply = { ARGV[1], 'loaded', now, 0, s[9], s[10] }
local won, winners, new_holds, marks, wins, units = {}, {}, {}, {}, 0, 0
for n = 1, count do
  local user = users[n]
  local answer
  local hold = won[user]
  if hold then
    answer = (hold_id(hold) == id_of(n) and '' or 'dup_unqueued|') .. hold
  elseif holds_already[n] == 1 then
    hold = redis.call('HGET', HOLDS, user)
    if not hold then return { ARGV[1], 'not_loaded' } end -- a receipt without its hold: the gate lost something
    if hold_id(hold) == id_of(n) then answer = hold
    elseif redis.call('ZSCORE', UNQUEUED, user) then answer = 'dup_unqueued|' .. hold
    else answer = 'dup|' .. hold end
  elseif shut then
    answer = shut
  else
    local qty = same_qty or quantities[n]
    if qty > max then
      answer = 'qty_over_limit'
    elseif qty > left then
      answer = 'sold_out'
    else
      local term = terms[qty]
      if not term then
        term = '|' .. int(qty) .. times .. int(price * qty) .. '|' .. currency
        terms[qty] = term
      end
      hold = id_of(n) .. term
      won[user] = hold
      left, units, wins = left - qty, units + qty, wins + 1
      winners[wins] = user
      new_holds[2 * wins - 1] = user
      new_holds[2 * wins] = hold
      marks[2 * wins - 1] = at
      marks[2 * wins] = user
      answer = hold
    end
  end
  reply[6 + n] = answer
end

if units > 0 then
  check_types()
  redis.call('SADD', BUYERS, unpack(winners)) -- first: when memory is short this is the one refused, with nothing done
  redis.call('HSET', HOLDS, unpack(new_holds))
  redis.call('ZADD', UNQUEUED, unpack(marks))
  redis.call('DECRBY', STOCK, int(units))
  redis.call('HINCRBY', SALE, 'held', int(units))
  reply[6] = redis.call('HINCRBY', SALE, 'version', 1)
end
reply[4] = left
return reply

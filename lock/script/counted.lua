-- What the scripts of semaphores and latches share. Comes after publish.lua or publish_slot.lua. KEYS[1] is the hash
-- that counts; its field kind says what it is.

-- Whether a hash of this kind exists. The write that changes nothing makes a replica that lags refuse,
-- instead of replying from what it does not know yet, and lets a server whose memory is full continue.
local function exists(kind)
  redis.call('HDEL', KEYS[1], '')
  local found = redis.call('HGET', KEYS[1], 'kind')
  if found == kind then
    return true
  end
  if found or redis.call('EXISTS', KEYS[1]) == 1 then
    error({err = 'FOREIGN the key holds something that is not a ' .. kind})
  end
  return false
end

local function number(field)
  return tonumber(redis.call('HGET', KEYS[1], field))
end

-- The server's clock in µs. By the clock of a client that is fast, permits of others would expire
-- early.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- Wakes as many waiters as there are free permits.
local function wake(channel, free)
  if free > 0 then
    publish(channel, '+' .. string.format('%d', free))
  end
end

-- Takes back the permits of pool whose lease has expired; now is in ms. When all have, the set may have expired as a
-- whole; and while the slot migrates, acquires and releases change the set alone (permits_moving.lua).
local function reclaim(pool, permits, channel, now)
  redis.call('ZREMRANGEBYSCORE', permits, '-inf', now)
  local count = redis.call('HMGET', pool, 'total', 'free')
  local n = count[1] - count[2] - redis.call('ZCARD', permits)
  if n ~= 0 then
    wake(channel, redis.call('HINCRBY', pool, 'free', n))
  end
end

-- Keeps the set of permits until the last lease in it ends.
local function expire(permits)
  local last = redis.call('ZREVRANGE', permits, 0, 0, 'WITHSCORES')
  redis.call('PEXPIREAT', permits, string.format('%d', math.ceil(tonumber(last[2]))))
end

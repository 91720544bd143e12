-- What all scripts of a readers-writer lock share, except the renewal, unless its slot migrates. Comes after rw_hold.lua,
-- and publish.lua or publish_slot.lua.
--
-- KEYS: lock, tombstone of the hold, leases, intents, token counter, channel of readers, channel of
--       writers
--
-- Each hold has its own deadline, by the server's clock alone; the keys last as long as the last of
-- them. A renewal by one owner keeps no hold of another alive (redisson#1458), and the end of one hold
-- shortens no other.

-- All that may be refused is refused here, before the first write.
redis.call('ZCARD', KEYS[3])
redis.call('ZCARD', KEYS[4])
if not isLock() then
  return redis.error_reply(notLock)
end
adopt(KEYS[1], KEYS[3])

-- Removes one hold and returns how many of its mode its owner has left.
local function drop(hold)
  redis.call('ZREM', KEYS[3], hold)
  return forget(hold)
end

-- Readers wait for intents of writers too: while there are any, waking readers would be in vain.
local function wakeReaders()
  if redis.call('ZCARD', KEYS[4]) == 0 then
    publish(KEYS[6], '*')
  end
end

-- Makes the keys last as long as the last hold, and returns whether they end earlier than before.
local function expire()
  local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  local before = redis.call('PTTL', KEYS[1])
  if last[2] then
    redis.call('PEXPIREAT', KEYS[1], last[2])
    redis.call('PEXPIREAT', KEYS[3], last[2])
  end
  return last[2] and tonumber(last[2]) - now < before - 1 -- PTTL rounds
end

-- Updates the mode after holds have ended, and wakes all waiters that it admits: on the way from
-- writing to reading the readers too (redisson#1542, #4744).
local function settle()
  local mode = redis.call('HGET', KEYS[1], 'mode')
  if not mode then
    return
  end
  local writes = tonumber(redis.call('HGET', KEYS[1], 'writes'))
  local reads = tonumber(redis.call('HGET', KEYS[1], 'reads'))
  if writes + reads == 0 then
    redis.call('DEL', KEYS[1], KEYS[3])
    wakeReaders()
    publish(KEYS[7], '0')
    return
  end
  if mode == 'write' and writes == 0 then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    redis.call('HDEL', KEYS[1], 'writer')
    wakeReaders()
  end
  if expire() then -- who waits asks again, and sleeps until then: the other holders may have died
    publish(KEYS[7], '0')
    if writes > 0 then
      publish(KEYS[6], '0')
    end
  end
end

-- Removes what has expired: holds, and intents of writers that no longer wait.
local function purge()
  local holds = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)
  for _, hold in ipairs(holds) do
    drop(hold)
  end
  local intents = redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
  if #holds > 0 then
    settle()
  elseif intents > 0 then
    wakeReaders()
  end
end

-- The rest is what the acquire and the release do in another way while the slot migrates (rw_moving.lua).

local function released() return redis.call('EXISTS', KEYS[2]) == 1 end

local function heldMode() return redis.call('HGET', KEYS[1], 'mode') end

-- The reply to an acquire that has to wait for other holds. A writer that waits keeps readers out for keep ms. A reader
-- waits for a write only, which may end before reads of its owner do.
local function refuse(hold, mode, keep)
  local first = mode == 'r' and redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
  if first then
    return {REFUSED, 0, 0, tonumber(first) - now}
  end
  if mode == 'w' and keep > 0 then
    redis.call('ZADD', KEYS[4], now + keep, hold)
    if redis.call('PTTL', KEYS[4]) < keep then
      redis.call('PEXPIRE', KEYS[4], keep)
    end
  end
  return {REFUSED, 0, 0, redis.call('PTTL', KEYS[1])}
end

-- For how many ms waiting writers keep readers out; nil: they do not.
local function keptOut()
  local last = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')
  return last[2] and tonumber(last[2]) - now
end

-- Gives a hold its lease. A repeated request is promised a whole one from now on.
local function extend(hold, lease)
  redis.call('ZADD', KEYS[3], 'GT', now + lease, hold)
  expire()
end

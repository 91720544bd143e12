-- What all scripts of a readers-writer lock but the renewal share.
--
-- KEYS: lock, leases, intents, tombstone of this hold, token counter, channel of readers, channel of writers
--
-- Each hold has its own deadline, by the clock of the server alone; the keys
-- last as long as the last of them. What one owner renews keeps nobody else's
-- hold alive (redisson#1458), and what one hold ends shortens no other.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Whatever may be refused is refused here, before the first write.
redis.call('ZCARD', KEYS[2])
redis.call('ZCARD', KEYS[3])
if not redis.call('HGET', KEYS[1], 'mode') and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('FOREIGN the key holds a hash that is not a readers-writer lock')
end

-- Removes one hold and says how many of its kind its owner has left.
local function drop(hold)
  redis.call('ZREM', KEYS[2], hold)
  local what = redis.call('HGET', KEYS[1], 'h:' .. hold)
  if not what then
    return 0
  end
  redis.call('HDEL', KEYS[1], 'h:' .. hold)
  if string.sub(what, 1, 1) == 'w' then
    return redis.call('HINCRBY', KEYS[1], 'writes', -1)
  end
  local field = 'r:' .. string.sub(what, 3)
  redis.call('HINCRBY', KEYS[1], 'reads', -1)
  local left = redis.call('HINCRBY', KEYS[1], field, -1)
  if left == 0 then
    redis.call('HDEL', KEYS[1], field)
  end
  return left
end

-- Readers wait for writers' intents too: while there are any, to wake the
-- readers would be in vain.
local function wakeReaders()
  if redis.call('ZCARD', KEYS[3]) == 0 then
    redis.call('PUBLISH', KEYS[6], '*')
  end
end

-- Makes the keys last as long as the last hold.
local function expire()
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', KEYS[1], last[2])
    redis.call('PEXPIREAT', KEYS[2], last[2])
  end
end

-- Draws the conclusion from holds that went, and tells everybody whom it admits:
-- on the way from writing to reading the readers too (redisson#1542, #4744).
local function settle()
  local mode = redis.call('HGET', KEYS[1], 'mode')
  if not mode then
    return
  end
  local writes = tonumber(redis.call('HGET', KEYS[1], 'writes'))
  local reads = tonumber(redis.call('HGET', KEYS[1], 'reads'))
  if writes + reads == 0 then
    redis.call('DEL', KEYS[1], KEYS[2])
    wakeReaders()
    redis.call('PUBLISH', KEYS[7], '0')
    return
  end
  if mode == 'write' and writes == 0 then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    redis.call('HDEL', KEYS[1], 'writer')
    wakeReaders()
  end
  expire()
end

-- Removes what has run out: holds, and writers that have ceased to wait.
local function purge()
  local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
  for _, hold in ipairs(over) do
    drop(hold)
  end
  local gone = redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  if #over > 0 then
    settle()
  elseif gone > 0 then
    wakeReaders()
  end
end

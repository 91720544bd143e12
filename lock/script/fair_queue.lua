-- What all scripts of a fair mutex share. Comes after mint.lua. An entry of the queue is a hold, a
-- blank, and the owner: all that is needed to grant the lock to a waiter that is not connected.
--
-- KEYS: lock, tombstone of the hold, queue, deadlines of the waiters, token counter, channel
--
-- All times are the server's, in ms: by the clock of a client that is wrong, waiters of others would
-- expire too early or never.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Makes the queue and the deadlines agree, in case only one of them was changed from outside
-- (redisson#5989: an entry without a deadline stopped every script). An entry that one of them lacks
-- is dropped: its waiter queues again at its next heartbeat.
local function agree()
  if redis.call('LLEN', KEYS[3]) == redis.call('ZCARD', KEYS[4]) then
    return
  end
  local queued = {}
  for _, entry in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if queued[entry] or not redis.call('ZSCORE', KEYS[4], entry) then
      redis.call('LREM', KEYS[3], -1, entry)
    else
      queued[entry] = true
    end
  end
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
    if not queued[entry] then
      redis.call('ZREM', KEYS[4], entry)
    end
  end
end

-- Drops the waiters at the head whose heartbeat has expired, and returns the first that is left and
-- for how long it counts as alive.
local function first()
  agree()
  local entry = redis.call('LINDEX', KEYS[3], 0)
  while entry do
    local deadline = tonumber(redis.call('ZSCORE', KEYS[4], entry) or 0)
    if deadline > now then
      return entry, deadline - now
    end
    redis.call('LPOP', KEYS[3])
    redis.call('ZREM', KEYS[4], entry)
    entry = redis.call('LINDEX', KEYS[3], 0)
  end
  return false
end

-- Grants the free lock to owner, with a new fencing token.
local function grant(hold, owner, lease)
  local token = mint(KEYS[5])
  redis.call('HSET', KEYS[1], 'owner', owner, 'count', 1, 'token', token, 'h:' .. hold, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
  return token
end

-- Wakes the first in the queue, so that it asks when the lease ends: only the first knows.
local function wakeFirst()
  local entry = redis.call('LINDEX', KEYS[3], 0)
  if entry then
    redis.pcall('PUBLISH', KEYS[6], string.sub(entry, 1, string.find(entry, ' ', 1, true) - 1))
  end
end

-- Grants the free lock to the first in the queue and wakes it; no other client can get in between.
-- Without the right to publish the grant is found by the waiter's next request.
-- The grant lasts as long as the waiter's place in the queue would have.
local function handOver()
  local entry, left = first()
  if not entry then
    return
  end
  local blank = string.find(entry, ' ', 1, true)
  local hold = string.sub(entry, 1, blank - 1)
  redis.call('LPOP', KEYS[3])
  redis.call('ZREM', KEYS[4], entry)
  grant(hold, string.sub(entry, blank + 1), left)
  redis.call('HSET', KEYS[1], 'granted', hold)
  redis.pcall('PUBLISH', KEYS[6], hold)
end

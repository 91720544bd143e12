-- What all scripts of a fair mutex share. Comes after mint.lua. An entry of the queue is a hold, a
-- blank, and the owner: all that is needed to give the lock to one who is away.
--
-- KEYS: lock, tombstone of this hold, queue, waiters, token counter, channel
--
-- Times are the server's own, in milliseconds: by a client's clock that is
-- wrong, the waiters of others would die too early or never.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Makes the queue and the set of deadlines agree again, should somebody have
-- removed from one alone (redisson#5989: an entry without a deadline stopped
-- every script). An entry that one of them lacks is not waiting: its waiter
-- takes its place anew at its next heartbeat.
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

-- Skips those at the head whose heartbeat has ended, and says who is first now.
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

-- Gives the free lock to owner. A fencing token is minted for each grant.
local function give(hold, owner, lease)
  local token = mint(KEYS[5])
  redis.call('HSET', KEYS[1], 'owner', owner, 'count', 1, 'token', token, 'h:' .. hold, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
  return token
end

-- Hands the free lock to the first in the queue and tells him; nobody can get
-- in between. The grant waits for him as long as his place would have been kept.
local function handOver()
  local entry, left = first()
  if not entry then
    return
  end
  local blank = string.find(entry, ' ', 1, true)
  local hold = string.sub(entry, 1, blank - 1)
  redis.call('LPOP', KEYS[3])
  redis.call('ZREM', KEYS[4], entry)
  give(hold, string.sub(entry, blank + 1), left)
  redis.call('HSET', KEYS[1], 'granted', hold)
  redis.call('PUBLISH', KEYS[6], hold)
end

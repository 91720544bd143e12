-- The holds in the hash of a readers-writer lock.
--
-- Their deadlines are in the sorted set of leases. While the slot of the lock migrates, a script may name no key that does
-- not exist, and the two may be at two masters. Then an acquire or a renewal leaves the deadline in the hash, in fields
-- m:<hold>, beside a field moved. The next script that names both keys takes them over, and counts that in adopted.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local notLock = 'FOREIGN the key holds a hash that is not a readers-writer lock'

local function isLock()
  return redis.call('HGET', KEYS[1], 'mode') or redis.call('EXISTS', KEYS[1]) == 0
end

-- Removes one hold from the hash and returns how many of its mode its owner has left.
local function forget(hold)
  local value = redis.call('HGET', KEYS[1], 'h:' .. hold)
  if not value then
    return 0
  end
  redis.call('HDEL', KEYS[1], 'h:' .. hold, 'm:' .. hold)
  if string.sub(value, 1, 1) == 'w' then
    return redis.call('HINCRBY', KEYS[1], 'writes', -1)
  end
  local field = 'r:' .. string.sub(value, 3)
  redis.call('HINCRBY', KEYS[1], 'reads', -1)
  local left = redis.call('HINCRBY', KEYS[1], field, -1)
  if left == 0 then
    redis.call('HDEL', KEYS[1], field)
  end
  return left
end

-- The deadlines in the hash, as a list of holds and their deadlines.
local function movedDeadlines(lock)
  local list = {}
  if redis.pcall('HEXISTS', lock, 'moved') == 1 then
    local all = redis.call('HGETALL', lock)
    for i = 1, #all, 2 do
      if string.sub(all[i], 1, 2) == 'm:' then
        list[#list + 1] = {string.sub(all[i], 3), tonumber(all[i + 1])}
      end
    end
  end
  return list
end

-- Moves the deadlines in the hash to the set of leases. The first write needs no memory. A hold without any deadline has
-- ended: the set expired when the last lease in it ended, while later ones were in the hash, which may have been released
-- since. If all leases have ended in this millisecond, the keys last until the script has removed the holds, which wakes
-- waiters.
local function adopt(lock, leases)
  if redis.pcall('HEXISTS', lock, 'moved') ~= 1 then
    return
  end
  local list = movedDeadlines(lock)
  redis.call('HDEL', lock, 'moved')
  redis.call('HINCRBY', lock, 'adopted', 1)
  for _, entry in ipairs(list) do
    redis.call('ZADD', leases, 'GT', string.format('%d', entry[2]), entry[1])
    redis.call('HDEL', lock, 'm:' .. entry[1])
  end
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    local hold = string.sub(field, 3)
    if string.sub(field, 1, 2) == 'h:' and not redis.call('ZSCORE', leases, hold) then
      redis.call('ZADD', leases, string.format('%d', now - 1), hold)
    end
  end
  local last = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')
  redis.call('PEXPIREAT', leases, string.format('%d', math.max(tonumber(last[2]), now + 1)))
  redis.call('PEXPIRE', lock, redis.call('PTTL', leases)) -- it lasted as long as a hold that was released
end

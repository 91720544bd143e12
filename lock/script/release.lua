-- Gives one hold back; the last one frees the lock and wakes a waiter.
--
-- KEYS: lock, latch of this hold, channel of the lock
-- ARGV: hold, owner, life of the latch in ms
-- Answer: holds that are left to the owner; -1: not held; -2: not held, and another owner has the lock
--
-- The latch remembers the answer, so that a request that arrives twice is
-- answered twice alike (redisson#4871). It is left behind even when nothing was
-- held: an acquire of this hold that is still on its way must not land later.
-- To set it is the first command, a write, so that a replica refuses instead of
-- guessing; most often the lock becomes free, so that is what it says at first.
local before = redis.call('SET', KEYS[2], '0', 'PX', ARGV[3], 'NX', 'GET')
if before then
  return tonumber(before)
end

local field = 'h:' .. ARGV[1]
local lock = redis.pcall('HMGET', KEYS[1], field, 'count', 'owner')
if lock.err then
  redis.call('DEL', KEYS[2]) -- a key of another type: nothing is changed
  return lock
end
if lock[1] and lock[2] == '1' then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', KEYS[3], '0')
  return 0
end

local left = -1
if lock[1] then
  redis.call('HDEL', KEYS[1], field)
  left = redis.call('HINCRBY', KEYS[1], 'count', -1)
elseif lock[3] and lock[3] ~= ARGV[2] then
  left = -2
end
redis.call('SET', KEYS[2], left, 'PX', ARGV[3])
return left

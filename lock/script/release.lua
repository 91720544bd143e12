-- Gives one hold back; the last one frees the lock and wakes a waiter, if one has left its mark.
-- Comes after a line that says how long a tombstone lives.
--
-- KEYS: lock, tombstone of this hold, channel of the lock; then, if there is one, a tombstone that nobody asks for any more
-- ARGV: hold; then, if they say anything: owner (else the hold is its own), and "w" (by PUBLISH) or "W"
--       (by SPUBLISH) to say that the lock is free even if nobody has left such a mark
-- Answer: holds that are left to the owner; -1: not held; -2: not held, and another owner has the lock
--
-- The tombstone remembers the answer, so that a request that arrives twice is
-- answered twice alike (redisson#4871). It is left behind even when nothing was
-- held: an acquire of this hold that is still on its way must not land later.
-- A hold that is there has no tombstone. One that is not may be the view of a replica
-- that is behind: the first command then is a write, which a replica refuses.
local field = 'h:' .. ARGV[1]
local lock = redis.call('HMGET', KEYS[1], 'count', field, 'notify')
if lock[1] == '1' and lock[2] then
  redis.call('SET', KEYS[2], '0', 'PX', life)
  redis.call('DEL', KEYS[1], KEYS[4] or KEYS[1])
  if lock[3] or ARGV[3] then
    local marks = (lock[3] or '') .. (ARGV[3] or '')
    if string.find(marks, 'w', 1, true) then
      redis.call('PUBLISH', KEYS[3], '0')
    end
    if string.find(marks, 'W', 1, true) then
      redis.call('SPUBLISH', KEYS[3], '0')
    end
  end
  return 0
end

local before = redis.call('SET', KEYS[2], '-1', 'PX', life, 'NX', 'GET')
if before then
  return tonumber(before)
end
local left = -1
if lock[2] then
  redis.call('HDEL', KEYS[1], field)
  left = redis.call('HINCRBY', KEYS[1], 'count', -1)
else
  local owner = redis.call('HGET', KEYS[1], 'owner')
  if owner and owner ~= (ARGV[2] or ARGV[1]) then
    left = -2
  end
end
redis.call('SET', KEYS[2], left, 'PX', life)
return left

-- Releases one hold of a mutex; the last one frees the lock, and publishes that if a waiter has left a
-- mark. Comes after a line that defines defaultTTL.
--
-- KEYS: lock, tombstone of the hold, channel of the lock; if there is one: an old tombstone to remove
-- ARGV: hold; each of the rest may be left out with those after it: TTL of the tombstone (defaultTTL),
--       owner (the hold is its own), flags: "w" (PUBLISH) or "W" (SPUBLISH) to publish without a mark
-- Reply: holds that the owner has left; NOT_HELD; or NOT_OWNER
--
-- The tombstone keeps the reply, so that a request that arrives twice gets the same (redisson#4871). It
-- is left even if nothing was held: an acquire of this hold that is still on its way must not be
-- granted later. A hold that exists has no tombstone. One that does not may be the view of a replica
-- that lags: then the first command is a write, which a replica refuses.
local field = 'h:' .. ARGV[1]
local ttl = ARGV[2] or defaultTTL
local lock = redis.call('HMGET', KEYS[1], 'count', field, 'notify')
if lock[1] == '1' and lock[2] then
  redis.call('SET', KEYS[2], '0', 'PX', ttl)
  redis.call('DEL', KEYS[1], KEYS[4] or KEYS[1])
  if lock[3] or ARGV[4] then
    local marks = (lock[3] or '') .. (ARGV[4] or '')
    if string.find(marks, 'w', 1, true) then
      redis.call('PUBLISH', KEYS[3], '0')
    end
    if string.find(marks, 'W', 1, true) then
      redis.call('SPUBLISH', KEYS[3], '0')
    end
  end
  return 0
end

local before = redis.call('SET', KEYS[2], NOT_HELD, 'PX', ttl, 'NX', 'GET')
if before then
  return tonumber(before)
end
local left = NOT_HELD
if lock[2] then
  redis.call('HDEL', KEYS[1], field)
  left = redis.call('HINCRBY', KEYS[1], 'count', -1)
else
  local owner = redis.call('HGET', KEYS[1], 'owner')
  if owner and owner ~= (ARGV[3] or ARGV[1]) then
    left = NOT_OWNER
  end
end
redis.call('SET', KEYS[2], left, 'PX', ttl)
return left

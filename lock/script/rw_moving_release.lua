-- Releases one hold of a readers-writer lock while its slot migrates. Comes after rw_moving.lua. The client leaves the
-- tombstone (record.lua), and removes the lease and the intent of the hold.
--
-- KEYS: lock
-- ARGV: hold, owner
-- Reply: that of rw_release.lua
--
-- The reply is also kept in the hash, for as long as that exists: the tombstone may be at the other master.
local hold, owner = ARGV[1], ARGV[2]
redis.call('HDEL', KEYS[1], '') -- a replica that lags refuses
if redis.call('EXISTS', KEYS[1]) == 0 then
  return NOT_HELD
end
purge()
local left = NOT_HELD
if redis.call('HEXISTS', KEYS[1], 'h:' .. hold) == 1 then
  left = drop(hold)
else
  local before = redis.call('HGET', KEYS[1], 'left:' .. hold)
  if before then
    return tonumber(before)
  end
  local writer = redis.call('HGET', KEYS[1], 'writer')
  if writer and writer ~= owner then
    left = NOT_OWNER
  end
end
redis.call('HSET', KEYS[1], 'left:' .. hold, left)
settle()
return left

-- Releases one hold of a readers-writer lock, or removes the intent of a writer. Comes after
-- rw_state.lua.
--
-- ARGV: hold, TTL of the tombstone, owner
-- Reply: holds of this mode that the owner has left; NOT_HELD; or NOT_OWNER: another owner writes
--
-- The tombstone keeps the reply, and refuses an acquire of this hold that arrives later. A replica
-- that lags refuses at the first write instead of replying from what it does not know yet.
local hold, ttl, owner = ARGV[1], ARGV[2], ARGV[3]
local intent = redis.call('ZREM', KEYS[4], hold)
purge()
if redis.call('HEXISTS', KEYS[1], 'h:' .. hold) == 1 then
  local left = drop(hold)
  redis.call('SET', KEYS[2], left, 'PX', ttl)
  settle()
  return left
end
if intent == 1 and not redis.call('HGET', KEYS[1], 'writer') then
  wakeReaders()
end

local before = redis.call('GET', KEYS[2])
if before then
  return tonumber(before)
end
local reply = NOT_HELD
local writer = redis.call('HGET', KEYS[1], 'writer')
if writer and writer ~= owner then
  reply = NOT_OWNER
end
redis.call('SET', KEYS[2], reply, 'PX', ttl)
return reply

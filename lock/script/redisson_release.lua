-- Releases one hold of a mutex in Redisson's layout; the last one frees the lock and publishes that.
--
-- KEYS: lock, tombstone of the hold, old tombstones to remove
--       while the slot of the lock migrates: the lock alone, and the client leaves the tombstone (record.lua)
-- ARGV: hold, TTL of the tombstone, owner, "w" (PUBLISH) or "W" (SPUBLISH), channel
-- Reply: holds that the owner has left; NOT_HELD; or NOT_OWNER
--
-- The tombstone keeps the reply, as Redisson's latch does, under its name. It is left even if nothing was held: an
-- acquire of this hold that is still on its way must not be granted later. The first write needs no memory, and comes
-- before the reply that a hold does not exist: a replica that lags refuses it.
local hold, ttl, owner = ARGV[1], ARGV[2], ARGV[3]
local marked = redis.pcall('HDEL', KEYS[1], 'h:' .. hold)
local before = KEYS[2] and redis.call('GET', KEYS[2])
if before then
  return tonumber(before)
end

local function keep(left)
  if KEYS[2] then
    redis.call('SET', KEYS[2], left, 'PX', ttl)
  end
  return left
end

local other = type(marked) == 'table' -- something else is at the key, as the lock of another library
if other and not string.find(marked.err, 'WRONGTYPE', 1, true) then
  return marked
end
local count = not other and tonumber(redis.call('HGET', KEYS[1], owner) or nil)
-- A hold without a field of its own exists if the owner has more holds than there are fields of holds. The field of the
-- fencing token (h:) is not one of those.
local fields = count and redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], 'h:')
if not count or marked == 0 and (hold ~= owner or count < fields) then
  local left = NOT_HELD
  if other or not count and redis.call('EXISTS', KEYS[1]) == 1 then
    left = NOT_OWNER
  end
  return keep(left)
end
if count > 1 then
  redis.call('HINCRBY', KEYS[1], owner, -1)
  return keep(count - 1)
end
redis.call('DEL', KEYS[1], unpack(KEYS, 3))
keep(0)
if ARGV[4] ~= 'W' or type(redis.pcall('SPUBLISH', ARGV[5], '0')) == 'table' then
  redis.pcall('PUBLISH', ARGV[5], '0')
end
return 0

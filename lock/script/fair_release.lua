-- Releases one hold of a fair mutex, or removes its waiter; after the last hold the lock goes to the
-- first in the queue. Comes after foreign.lua, plain.lua and fair_queue.lua.
--
-- ARGV: hold, TTL of the tombstone, owner
-- Reply: holds that the owner has left; NOT_HELD; or NOT_OWNER
--
-- The tombstone keeps the reply, and refuses an acquire of this hold that arrives later
-- (redisson#4871, #5019).
local hold, ttl, owner = ARGV[1], ARGV[2], ARGV[3]
local me = hold .. ' ' .. owner

-- All that may be refused comes before the first write, and a replica that lags refuses at the first
-- write instead of replying from what it does not know yet.
redis.call('LLEN', KEYS[3])
if type(redis.pcall('HLEN', KEYS[1])) == 'table' then
  widen(KEYS[1], prefixOf(KEYS[2], hold), owner)
end
local kind = redis.pcall('HLEN', KEYS[1])
local other = type(kind) == 'table' -- such as the lock of another library: this hold has ended, or was never granted
if other and not string.find(kind.err, 'WRONGTYPE', 1, true) then
  return kind
end
if leave(me) then
  wakeFirst()
end

if not other and redis.call('HDEL', KEYS[1], 'h:' .. hold) == 1 then
  local left = redis.call('HINCRBY', KEYS[1], 'count', -1)
  redis.call('SET', KEYS[2], left, 'PX', ttl)
  if left == 0 then
    redis.call('DEL', KEYS[1])
    handOver()
  end
  return left
end

local before = redis.call('GET', KEYS[2])
if before then
  return tonumber(before)
end

local reply = NOT_HELD
local holder = not other and redis.call('HGET', KEYS[1], 'owner')
if other or holder and holder ~= owner then
  reply = NOT_OWNER
end
redis.call('SET', KEYS[2], reply, 'PX', ttl)
return reply

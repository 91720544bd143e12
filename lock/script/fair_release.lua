-- Gives back one hold of a fair mutex, or the place of its waiter; after the
-- last one the lock goes to the first in the queue. Comes after fair_queue.lua.
--
-- ARGV: hold, owner, TTL of the tombstone in ms
-- Answer: holds that are left to the owner; -1: not held; -2: not held, and another owner has the lock
--
-- The tombstone remembers the answer, and keeps an acquire of this hold that is
-- still on its way from landing later (redisson#4871, #5019).
local hold, owner = ARGV[1], ARGV[2]
local me = hold .. ' ' .. owner

-- All that may be refused comes before the first write, and a replica that is
-- behind refuses at the first write instead of guessing.
redis.call('LLEN', KEYS[3])
redis.call('HLEN', KEYS[1])
if redis.call('ZREM', KEYS[4], me) == 1 then
  redis.call('LREM', KEYS[3], 1, me)
end

if redis.call('HDEL', KEYS[1], 'h:' .. hold) == 1 then
  local left = redis.call('HINCRBY', KEYS[1], 'count', -1)
  redis.call('SET', KEYS[2], left, 'PX', ARGV[3])
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

local answer = -1
local holder = redis.call('HGET', KEYS[1], 'owner')
if holder and holder ~= owner then
  answer = -2
end
redis.call('SET', KEYS[2], answer, 'PX', ARGV[3])
return answer

-- Gives back one hold of a readers-writer lock, or the intent of a writer.
-- Comes after rw_state.lua.
--
-- ARGV: hold, owner, TTL of the tombstone in ms
-- Answer: holds of this kind that are left to the owner; -1: not held; -2: not
--   held, and another owner writes
--
-- The tombstone remembers the answer, and keeps an acquire of this hold that is
-- still on its way from landing later. A replica that is behind refuses at the
-- first write instead of guessing.
local hold = ARGV[1]
local waited = redis.call('ZREM', KEYS[3], hold)
purge()
if redis.call('HEXISTS', KEYS[1], 'h:' .. hold) == 1 then
  local left = drop(hold)
  redis.call('SET', KEYS[4], left, 'PX', ARGV[3])
  settle()
  return left
end
if waited == 1 and not redis.call('HGET', KEYS[1], 'writer') then
  wakeReaders()
end

local before = redis.call('GET', KEYS[4])
if before then
  return tonumber(before)
end
local answer = -1
local writer = redis.call('HGET', KEYS[1], 'writer')
if writer and writer ~= ARGV[2] then
  answer = -2
end
redis.call('SET', KEYS[4], answer, 'PX', ARGV[3])
return answer

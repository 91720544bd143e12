-- Takes a lock from whoever has it.
--
-- KEYS: lock, channel of the lock
-- Answer: 1, or 0 if nobody had it
local lock = redis.call('HMGET', KEYS[1], 'owner', 'waits')
if not lock[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
  end
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], '0')
if lock[2] and string.find(lock[2], 'W', 1, true) then
  redis.call('SPUBLISH', KEYS[2], '0')
end
return 1

-- Takes a lock from whoever has it.
--
-- KEYS: lock, channel of the lock
-- Answer: 1, or 0 if nobody had it
if not redis.call('HGET', KEYS[1], 'owner') then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
  end
  return 0
end
redis.call('DEL', KEYS[1])
-- Who waits behind others has left no mark in this hash. A server without SPUBLISH
-- (before Redis 7.0) has no waiters who want it.
redis.call('PUBLISH', KEYS[2], '0')
redis.pcall('SPUBLISH', KEYS[2], '0')
return 1

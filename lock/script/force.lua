-- Takes a mutex from its owner.
--
-- KEYS: lock
-- ARGV: channel of the lock
-- Reply: OK, or NOT_HELD
if not plainHold(KEYS[1]) and not redis.call('HGET', KEYS[1], 'owner') then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
  end
  return NOT_HELD
end
redis.call('DEL', KEYS[1])
-- Not every waiter has left a mark in this hash. On a server without SPUBLISH (before Redis 7.0) no
-- waiter expects one.
redis.pcall('PUBLISH', ARGV[1], '0')
redis.pcall('SPUBLISH', ARGV[1], '0')
return OK

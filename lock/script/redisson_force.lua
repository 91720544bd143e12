-- Takes a mutex in Redisson's layout from its owner. Comes after redisson.lua.
--
-- KEYS: lock
-- ARGV: channel of the lock
-- Reply: OK, or NOT_HELD
if not isLock(KEYS[1]) then
  return NOT_HELD
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], '0')
redis.pcall('SPUBLISH', ARGV[1], '0')
return OK

-- Takes a mutex in Redisson's layout from its owner. Comes after redisson.lua and publish_both.lua.
--
-- KEYS: lock
-- ARGV: channel of the lock
-- Reply: OK, or NOT_HELD
if not isLock(KEYS[1]) then
  return NOT_HELD
end
redis.call('DEL', KEYS[1])
publishBoth(ARGV[1])
return OK

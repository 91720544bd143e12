-- Takes a mutex from its owner. Comes after plain.lua and publish_both.lua.
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
publishBoth(ARGV[1])
return OK

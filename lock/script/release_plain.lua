-- Releases a mutex that was acquired with SET, if it is still the string; else release.lua, which comes after
-- it, finds what it is by now. Its keys, arguments and reply are those of release.lua.
--
-- Without a TTL the lease lasts longer than the tombstone has to: then the lock itself becomes the tombstone, in
-- one command. A user without the right to RENAME gets the same in two.
if redis.pcall('GET', KEYS[1]) == ARGV[1] and not ARGV[4] then
  if KEYS[3] then
    redis.call('DEL', unpack(KEYS, 3))
  end
  if ARGV[2] or redis.pcall('RENAME', KEYS[1], KEYS[2]).err then
    redis.call('DEL', KEYS[1])
    redis.call('SET', KEYS[2], '0', 'PX', ARGV[2] or defaultTTL)
  end
  return 0
end

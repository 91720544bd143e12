-- Releases a mutex that was acquired with SET, if it is still the string; else release.lua, which comes after
-- it, finds what it is by now. Its keys, arguments and reply are those of release.lua.
if redis.pcall('GET', KEYS[1]) == ARGV[1] and not ARGV[4] then
  redis.call('DEL', KEYS[1], KEYS[3] or KEYS[1])
  redis.call('SET', KEYS[2], '0', 'PX', ARGV[2] or defaultTTL)
  return 0
end

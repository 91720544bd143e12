-- Removes a latch and wakes its waiters.
--
-- KEYS: latch, tombstone of the request, channel
-- ARGV: TTL of the tombstone
-- Reply: {OK}; or {ABSENT}
local before = repeated(KEYS[2])
if before then
  return before
end
local code = ABSENT
if exists('latch') then
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', KEYS[3], '*')
  code = OK
end
return keep(KEYS[2], ARGV[1], {code})

-- Removes a latch; its waiters are told.
--
-- KEYS: latch, tombstone of this request, channel
-- ARGV: TTL of the tombstone in ms
-- Answer: {1}: removed; {0}: it was not there
local before = answered(KEYS[2])
if before then
  return before
end
local n = 0
if find('latch') then
  n = redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', KEYS[3], '*')
end
return answer(KEYS[2], ARGV[1], {n})

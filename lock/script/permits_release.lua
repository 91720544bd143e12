-- Releases leased permits.
--
-- KEYS: semaphore, tombstone of the request, permits, channel
-- ARGV: TTL of the tombstone, ids of permits
-- Reply: {OK, permits released}; one whose lease had expired does not count
local before = repeated()
if before then
  return before
end
local there = exists('permits')
if there then
  reclaim(KEYS[1], KEYS[3], KEYS[4], clock() / 1000)
end
local n = 0
for i = 2, #ARGV do
  n = n + redis.call('ZREM', KEYS[3], ARGV[i])
end
if there and n > 0 then
  wake(KEYS[4], redis.call('HINCRBY', KEYS[1], 'free', n))
end
return keep(ARGV[1], {OK, n})

-- Gives leased permits back.
--
-- KEYS: semaphore, permits, tombstone of this request, channel
-- ARGV: TTL of the tombstone in ms, ids
-- Answer: {permits given back, the same}; one whose lease was over is not among them
local before = answered(KEYS[3])
if before then
  return before
end
local there = find('permits')
if there then
  reclaim(KEYS[2], KEYS[4], clock() / 1000)
end
local n = 0
for i = 2, #ARGV do
  n = n + redis.call('ZREM', KEYS[2], ARGV[i])
end
if there and n > 0 then
  wake(KEYS[4], redis.call('HINCRBY', KEYS[1], 'free', n))
end
return answer(KEYS[3], ARGV[1], {n, n})

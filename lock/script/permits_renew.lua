-- Prolongs leased permits, all or none; never shortens one.
--
-- KEYS: semaphore, permits, channel
-- ARGV: lease in ms, ids
-- Answer: {1}: prolonged; {0}: at least one of them is not held any more
if not find('permits') then
  return {0}
end
local now = clock() / 1000
reclaim(KEYS[2], KEYS[3], now)
for i = 2, #ARGV do
  if not redis.call('ZSCORE', KEYS[2], ARGV[i]) then
    return {0}
  end
end
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[2], 'GT', now + tonumber(ARGV[1]), ARGV[i])
end
return {1}

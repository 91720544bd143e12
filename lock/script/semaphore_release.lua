-- Releases holds of a semaphore without leases.
--
-- KEYS: semaphore, tombstone of the request
-- ARGV: TTL of the tombstone, channel, holds
-- Reply: {OK, permits released, holds that were held}
--
-- The tombstone is left even if nothing was held: an acquire of this hold that is still on its way must
-- not be granted later.
local before = repeated()
if before then
  return before
end
local permits, holds = 0, 0
if exists('semaphore') then
  for i = 3, #ARGV do
    local n = redis.call('HGET', KEYS[1], 'h:' .. ARGV[i])
    if n then
      redis.call('HDEL', KEYS[1], 'h:' .. ARGV[i])
      permits = permits + tonumber(n)
      holds = holds + 1
    end
  end
  if permits > 0 then
    wake(ARGV[2], redis.call('HINCRBY', KEYS[1], 'free', permits))
  end
end
return keep(ARGV[1], {OK, permits, holds})

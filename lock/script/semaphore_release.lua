-- Gives holds of a semaphore without leases back.
--
-- KEYS: semaphore, tombstone of this request, channel
-- ARGV: TTL of the tombstone in ms, holds
-- Answer: {permits given back, holds that were held}
--
-- The tombstone is left behind even when nothing was held: an acquire of this hold
-- that is still on its way must not land later.
local before = answered(KEYS[2])
if before then
  return before
end
local permits, holds = 0, 0
if find('semaphore') then
  for i = 2, #ARGV do
    local n = redis.call('HGET', KEYS[1], 'h:' .. ARGV[i])
    if n then
      redis.call('HDEL', KEYS[1], 'h:' .. ARGV[i])
      permits = permits + tonumber(n)
      holds = holds + 1
    end
  end
  if permits > 0 then
    wake(KEYS[3], redis.call('HINCRBY', KEYS[1], 'free', permits))
  end
end
return answer(KEYS[2], ARGV[1], {permits, holds})

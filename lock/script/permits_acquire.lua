-- Acquires leased permits, all or none. The ids of the permits are the hold, a dot, and 1 to n.
--
-- KEYS: semaphore, tombstone of the hold, permits, channel
-- ARGV: hold, lease, n
-- Reply: {OK, free}; {REFUSED, free, ms until the next lease expires}: too few are free; RELEASED; ABSENT; or
--        {OUT_OF_RANGE, total}
--
-- A request that arrives twice finds its own permits. It is promised a whole lease again, since its
-- client counts from then.
if not exists('permits') then
  return ABSENT
end
local now = clock() / 1000
reclaim(KEYS[1], KEYS[3], KEYS[4], now)
local prefix, deadline, n = ARGV[1] .. '.', now + tonumber(ARGV[2]), tonumber(ARGV[3])
local free = number('free')
if repeated() then
  return RELEASED
end
if redis.call('ZSCORE', KEYS[3], prefix .. 1) then
  for i = 1, n do
    if not redis.call('ZSCORE', KEYS[3], prefix .. i) then
      return RELEASED -- some of them were released by force
    end
  end
  for i = 1, n do
    redis.call('ZADD', KEYS[3], 'GT', deadline, prefix .. i)
  end
  expire(KEYS[3])
  return {OK, free}
end
local total = number('total')
if n > total then
  return {OUT_OF_RANGE, total}
end
if n > free then
  local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  local left = 0
  if first[2] then
    left = math.ceil(tonumber(first[2]) - now)
  end
  return {REFUSED, free, left}
end
for i = 1, n do
  redis.call('ZADD', KEYS[3], deadline, prefix .. i)
end
redis.call('HINCRBY', KEYS[1], 'free', -n)
expire(KEYS[3])
return {OK, free - n}

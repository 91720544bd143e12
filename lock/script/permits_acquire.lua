-- Takes leased permits, all or none; their ids are chosen by the asker.
--
-- KEYS: semaphore, permits, tombstone of this hold, channel
-- ARGV: lease in ms, ids
-- Answer: {code, free or total, ms until the next lease is over, or 0}
--   code  as in semaphore_acquire.lua
--
-- A request that arrives twice finds its own ids; it is promised a whole
-- lease again, for its asker counts from then.
if not find('permits') then
  return {-2, 0, 0}
end
local now = clock() / 1000
reclaim(KEYS[2], KEYS[4], now)
local over = now + tonumber(ARGV[1])
local n = #ARGV - 1
local free = number('free')
if redis.call('EXISTS', KEYS[3]) == 1 then
  return {-1, free, 0}
end
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then
  for i = 2, #ARGV do
    if not redis.call('ZSCORE', KEYS[2], ARGV[i]) then
      return {-1, free, 0} -- somebody took a part of them away
    end
  end
  for i = 2, #ARGV do
    redis.call('ZADD', KEYS[2], 'GT', over, ARGV[i])
  end
  return {1, free, 0}
end
local total = number('total')
if n > total then
  return {-3, total, 0}
end
if n > free then
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local left = 0
  if first[2] then
    left = math.ceil(tonumber(first[2]) - now)
  end
  return {0, free, left}
end
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[2], over, ARGV[i])
end
redis.call('HINCRBY', KEYS[1], 'free', -n)
return {1, free - n, 0}

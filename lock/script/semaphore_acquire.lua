-- Takes permits of a semaphore without leases, all or none.
--
-- KEYS: semaphore, tombstone of this hold
-- ARGV: hold, permits
-- Answer: {code, free or total, 0}
--   code  1: taken; 0: too few are free; -1: given back before; -2: nobody has set the semaphore up;
--         -3: more than there are
--
-- A request that arrives twice finds its own hold.
if not find('semaphore') then
  return {-2, 0, 0}
end
local hold = 'h:' .. ARGV[1]
local n = tonumber(ARGV[2])
local free = number('free')
if redis.call('HEXISTS', KEYS[1], hold) == 1 then
  return {1, free, 0}
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  return {-1, free, 0}
end
local total = number('total')
if n > total then
  return {-3, total, 0}
end
if n > free then
  return {0, free, 0}
end
redis.call('HSET', KEYS[1], hold, n)
redis.call('HINCRBY', KEYS[1], 'free', -n)
return {1, free - n, 0}

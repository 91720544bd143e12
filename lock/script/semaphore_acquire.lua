-- Acquires permits without a lease, all or none. Comes after tombstone.lua.
--
-- KEYS: semaphore, tombstone of the hold
-- ARGV: hold, permits
-- Reply: {OK, free}; {REFUSED, free}: too few are free; RELEASED; ABSENT; or {OUT_OF_RANGE, total}
--
-- A request that arrives twice finds its own hold.
if not exists('semaphore') then
  return ABSENT
end
local hold = 'h:' .. ARGV[1]
local n = tonumber(ARGV[2])
local free = number('free')
if redis.call('HEXISTS', KEYS[1], hold) == 1 then
  return {OK, free}
end
if repeated() then
  return RELEASED
end
local total = number('total')
if n > total then
  return {OUT_OF_RANGE, total}
end
if n > free then
  return {REFUSED, free}
end
redis.call('HSET', KEYS[1], hold, n)
redis.call('HINCRBY', KEYS[1], 'free', -n)
return {OK, free - n}

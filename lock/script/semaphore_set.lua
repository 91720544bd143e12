-- Sets or changes how many permits a semaphore of either kind has.
--
-- KEYS: semaphore, tombstone of the request; if permits are leased: permits, but for "try" while the slot migrates
-- ARGV: TTL of the tombstone, kind, how ("try", "set" or "add"), permits, channel
-- Reply: {OK, total}; {REFUSED, total}: "try", and it was set up before; {ABSENT}: "add", and it was
--        not set up; or {OUT_OF_RANGE, total}: fewer than none
--
-- The tombstone makes a request that arrives twice count once (redisson's addPermits counts it twice).
local before = repeated()
if before then
  return before
end

local kind, how, n = ARGV[2], ARGV[3], tonumber(ARGV[4])
if not exists(kind) then
  if how == 'add' then
    return keep(ARGV[1], {ABSENT})
  end
  -- If the hash alone was removed, permits may still be leased. While the slot migrates, acquires count them (see
  -- permits_moving.lua), and free is counted after that.
  local free = n - (KEYS[3] and redis.call('ZCARD', KEYS[3]) or 0)
  redis.call('HSET', KEYS[1], 'kind', kind, 'total', n, 'free', free)
  wake(ARGV[5], free)
  return keep(ARGV[1], {OK, n})
end

if kind == 'permits' and KEYS[3] then
  reclaim(KEYS[1], KEYS[3], ARGV[5], clock() / 1000)
end
local total = number('total')
if how == 'try' then
  return keep(ARGV[1], {REFUSED, total})
end
local more = n
if how == 'set' then
  more = n - total
end
if total + more < 0 then
  return keep(ARGV[1], {OUT_OF_RANGE, total})
end
redis.call('HINCRBY', KEYS[1], 'total', more)
local free = redis.call('HINCRBY', KEYS[1], 'free', more)
if more > 0 then
  wake(ARGV[5], free)
end
return keep(ARGV[1], {OK, total + more})

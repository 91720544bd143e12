-- Sets or changes how many permits a semaphore has, of either kind.
--
-- KEYS: semaphore, permits, tombstone of this request, channel
-- ARGV: kind, how ("try", "set" or "add"), permits, TTL of the tombstone in ms
-- Answer: {code, total}
--   code  1: done; 0: "try", and it was set before; -2: "add", and nobody has set it; -3: less than none
--
-- The tombstone makes a request that arrives twice count once (redisson's addPermits
-- counts it twice).
local before = answered(KEYS[3])
if before then
  return before
end

local there = find(ARGV[1])
local n = tonumber(ARGV[3])
if not there then
  if ARGV[2] == 'add' then
    return answer(KEYS[3], ARGV[4], {-2, 0})
  end
  -- Somebody removed the hash alone: what is leased is leased.
  local free = n - redis.call('ZCARD', KEYS[2])
  redis.call('HSET', KEYS[1], 'kind', ARGV[1], 'total', n, 'free', free)
  wake(KEYS[4], free)
  return answer(KEYS[3], ARGV[4], {1, n})
end

local total = number('total')
if ARGV[2] == 'try' then
  return answer(KEYS[3], ARGV[4], {0, total})
end
local more = n
if ARGV[2] == 'set' then
  more = n - total
end
if total + more < 0 then
  return answer(KEYS[3], ARGV[4], {-3, total})
end
redis.call('HINCRBY', KEYS[1], 'total', more)
local free = redis.call('HINCRBY', KEYS[1], 'free', more)
if more > 0 then
  wake(KEYS[4], free)
end
return answer(KEYS[3], ARGV[4], {1, total + more})

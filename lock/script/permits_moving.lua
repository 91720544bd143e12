-- Leased permits while their slot migrates: a script may name no key that does not exist, and names the set of permits
-- alone. Comes after counted.lua. The total is asked for by a request of its own, and does not change meanwhile
-- (semaphore_set.lua waits until the slot has migrated). free is changed by a request of its own, and counted again
-- afterwards (reclaim).
--
-- What has expired stays in the set: a script could not add to it after it had removed the last.
local now = clock() / 1000

-- Whether a permit is held.
local function held(id)
  return tonumber(redis.call('ZSCORE', KEYS[1], id) or 0) > now
end

-- Gives the permits of a hold a lease, never a shorter one.
local function lease(hold, n, ms)
  for i = 1, n do
    redis.call('ZADD', KEYS[1], 'GT', now + ms, hold .. '.' .. i)
  end
  expire(KEYS[1])
end

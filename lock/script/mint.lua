-- Mints a fencing token: greater than the one before, and no less than the server's clock in
-- microseconds.
--
-- A mere counter is as volatile as the lock: a promoted replica that missed the last grants would mint
-- their tokens again. The clock covers what it missed, unless that clock is behind by more than has
-- passed since those grants. For the same reason the counter may expire after a day without a grant
-- (redisson#6510: 25 million counters were never removed). Microseconds fit into a Lua number exactly
-- until the year 2255.
local function mint(counter)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local before = tonumber(redis.call('SET', counter, now, 'PX', 86400000, 'GET') or 0) or 0
  if before < now then
    return now
  end
  redis.call('SET', counter, before + 1, 'PX', 86400000)
  return before + 1
end

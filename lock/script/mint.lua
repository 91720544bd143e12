-- Mints a fencing token: greater than the one before, and no less than the
-- server's clock in microseconds.
--
-- A mere counter is as volatile as the lock: a replica that is promoted without
-- having heard of the last grants would mint their numbers once more. The clock
-- makes up for what it has not heard, as long as its own is not behind by more
-- than has passed since those grants; where the counter is ahead, it counts on.
-- For the same reason the counter may be forgotten after a day without a grant
-- (redisson#6510: 25 million counters were never removed). Microseconds fit
-- into a Lua number without loss until the year 2255.
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


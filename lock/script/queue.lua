-- A queue of waiters, first come first: a list, and a sorted set of the same by the time at which they expire
-- without a heartbeat. Comes after a line that defines queue and waiters, the keys of the two, and form, the pattern of
-- an entry.
--
-- All times are the server's, in ms: by the clock of a client that is wrong, waiters of others would
-- expire too early or never.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Makes the queue and the deadlines agree, in case only one of them was changed from outside
-- (redisson#5989: an entry without a deadline stopped every script). An entry that one of them lacks
-- is dropped: its waiter queues again at its next heartbeat.
local function repair()
  local queued = {}
  for _, entry in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    if queued[entry] or not redis.call('ZSCORE', waiters, entry) then
      redis.call('LREM', queue, -1, entry)
    else
      queued[entry] = true
    end
  end
  for _, entry in ipairs(redis.call('ZRANGE', waiters, 0, -1)) do
    if not queued[entry] then
      redis.call('ZREM', waiters, entry)
    end
  end
end

-- Repairs a queue and deadlines whose lengths differ. Equal lengths can hide a difference: first finds it at the head.
local function agree()
  if redis.call('LLEN', queue) == redis.call('ZCARD', waiters) then
    return
  end
  repair()
end

-- Drops the waiters at the head whose heartbeat has expired, and returns the first that is left and for how long it
-- counts as alive. An entry in another format, which only another program can have added, is dropped too: it would keep
-- all others waiting.
local function first()
  agree()
  local entry = redis.call('LINDEX', queue, 0)
  while entry do
    local deadline = tonumber(redis.call('ZSCORE', waiters, entry) or 0)
    if deadline > now and string.match(entry, form) then
      return entry, deadline - now
    end
    redis.call('LPOP', queue)
    if redis.call('ZREM', waiters, entry) == 0 then -- it had no deadline
      repair()
    end
    entry = redis.call('LINDEX', queue, 0)
  end
  return false
end

-- Queues a waiter, or renews its heartbeat: it counts as alive for keep ms. With heartbeats, a waiter may wait for any
-- time (redisson#3004).
local function enqueue(me, keep)
  agree()
  if redis.call('ZADD', waiters, now + keep, me) == 1 then
    redis.call('RPUSH', queue, me)
  end
  -- A queue whose waiters have all expired expires too.
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, keep)
    redis.call('PEXPIRE', waiters, keep)
  end
end

-- Removes a waiter, and reports whether it was the first.
local function leave(me)
  if redis.call('ZREM', waiters, me) == 0 then
    return false
  end
  local head = redis.call('LINDEX', queue, 0) == me
  redis.call('LREM', queue, 1, me)
  return head
end

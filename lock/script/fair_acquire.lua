-- Acquires a fair mutex for one hold, or queues its waiter, or renews its heartbeat. Comes after
-- foreign.lua, plain.lua and fair_queue.lua.
--
-- ARGV: hold, lease, owner, flags ("n" refuses an owner that holds the lock), for how many ms the
--       waiter counts as alive without a heartbeat (0: it does not queue), metadata of the grant (empty: none)
-- Reply: {OK, token, count}; {REFUSED, 0, 0, ttl}; RELEASED; or REENTERED
--   ttl  ms after which it is worth retrying, negative: no end is known
--
-- A request that arrives twice finds its hold or its waiter, and changes only when they expire.
local hold, lease, owner = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local keep = tonumber(ARGV[5])
local me = hold .. ' ' .. owner

-- Keeps the metadata with a grant to this hold.
local function describe()
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'metadata', ARGV[6])
  end
end

-- All that may be refused comes before the first write.
redis.call('LLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])
local holder = redis.pcall('HGET', KEYS[1], 'owner')
if type(holder) == 'table' then
  local reply = widen(KEYS[1], prefixOf(KEYS[2], hold), owner)
  if reply then
    return reply
  end
  holder = redis.call('HGET', KEYS[1], 'owner')
end
local known = redis.call('HEXISTS', KEYS[1], 'h:' .. hold) == 1
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return foreign(KEYS[1])
end
if not known and redis.call('EXISTS', KEYS[2]) == 1 then
  return RELEASED
end
if not known and holder == owner and ARGV[4] == 'n' then
  return REENTERED
end

if keep > 0 and redis.call('ZSCORE', KEYS[4], me) then
  -- A heartbeat is not refused by a server whose memory is full: the first write needs none.
  redis.call('ZREM', KEYS[4], '')
end
if not holder and keep > 0 then
  redis.call('ZADD', KEYS[4], 'XX', now + keep, me) -- this request is a heartbeat
  local head = first()
  if not head or head == me then
    redis.call('LREM', KEYS[3], 1, me)
    redis.call('ZREM', KEYS[4], me)
    local token = grant(hold, owner, lease)
    describe()
    wakeBefore(lease)
    return {OK, token, 1}
  end
elseif not holder and not first() then
  local token = grant(hold, owner, lease)
  describe()
  return {OK, token, 1}
end

if holder == owner then
  if not known then
    redis.call('HINCRBY', KEYS[1], 'count', 1)
    redis.call('HSET', KEYS[1], 'h:' .. hold, 1)
    if redis.call('ZREM', KEYS[4], me) == 1 then
      redis.call('LREM', KEYS[3], 1, me)
    end
  end
  -- A handed-over grant has no lease yet: the first request of the owner gives it one. A lease is
  -- never shortened.
  local handed = redis.call('HDEL', KEYS[1], 'granted') == 1
  if handed then
    describe()
  end
  if handed or redis.call('PTTL', KEYS[1]) < lease then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
  if handed then
    wakeBefore(lease)
  end
  return {OK, tonumber(redis.call('HGET', KEYS[1], 'token') or 0), tonumber(redis.call('HGET', KEYS[1], 'count'))}
end

if keep > 0 then
  enqueue(me, keep)
end
-- The lock expired or was removed: only the first in the queue can be granted it, so it is now.
if not holder then
  handOver()
end
if redis.call('LINDEX', KEYS[3], 0) ~= me then
  return {REFUSED, 0, 0, -1}
end
-- The first retries when the lease has expired; the others are woken.
return {REFUSED, 0, 0, redis.call('PTTL', KEYS[1])}

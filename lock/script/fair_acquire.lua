-- Takes a fair mutex for one hold, or takes or keeps its place in the queue.
-- Comes after fair_queue.lua.
--
-- ARGV: owner, hold, lease in ms, for how many ms the place is kept without a
--   heartbeat (0: take no place), "1" to refuse an owner that holds the lock
-- Answer: {granted, count, token, ttl}
--   granted  1: held by this hold; 0: not; -1: this hold was given back before;
--            -3: the owner holds it, and must not hold it twice
--   ttl      ms until it is worth asking again, negative: no end is known
--
-- A request that arrives twice finds its hold or its place and changes nothing
-- but how long they last.
local hold, owner, lease = ARGV[2], ARGV[1], tonumber(ARGV[3])
local keep = tonumber(ARGV[4])
local me = hold .. ' ' .. owner

-- All that may be refused comes before the first write.
redis.call('LLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])
local holder = redis.call('HGET', KEYS[1], 'owner')
local known = redis.call('HEXISTS', KEYS[1], 'h:' .. hold) == 1
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
end
if not known and redis.call('EXISTS', KEYS[2]) == 1 then
  return {-1, 0, 0, 0}
end
if not known and holder == owner and ARGV[5] == '1' then
  return {-3, 0, 0, 0}
end

if not holder and keep > 0 then
  redis.call('ZADD', KEYS[4], 'XX', now + keep, me) -- who asks is not dead
  local head = first()
  if not head or head == me then
    redis.call('LREM', KEYS[3], 1, me)
    redis.call('ZREM', KEYS[4], me)
    return {1, 1, give(hold, owner, lease), 0}
  end
elseif not holder and not first() then
  return {1, 1, give(hold, owner, lease), 0}
end

if holder == owner then
  if not known then
    redis.call('HINCRBY', KEYS[1], 'count', 1)
    redis.call('HSET', KEYS[1], 'h:' .. hold, 1)
    if redis.call('ZREM', KEYS[4], me) == 1 then
      redis.call('LREM', KEYS[3], 1, me)
    end
  end
  -- What was granted to one who was away is no lease yet: whoever of the owner
  -- comes first makes it one. A lease is never shortened.
  if redis.call('HDEL', KEYS[1], 'granted') == 1 or redis.call('PTTL', KEYS[1]) < lease then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
  return {1, tonumber(redis.call('HGET', KEYS[1], 'count')), tonumber(redis.call('HGET', KEYS[1], 'token') or 0), 0}
end

if keep > 0 then
  -- With a heartbeat, a waiter may grow as old as it likes (redisson#3004).
  agree()
  if redis.call('ZADD', KEYS[4], now + keep, me) == 1 then
    redis.call('RPUSH', KEYS[3], me)
  end
  -- A queue whose waiters are all gone goes too.
  if redis.call('PTTL', KEYS[3]) < keep then
    redis.call('PEXPIRE', KEYS[3], keep)
    redis.call('PEXPIRE', KEYS[4], keep)
  end
end
-- Nobody but the first in the queue can be granted a lock that is free, so it
-- goes to him now: its last owner let it expire, or somebody removed it.
if not holder then
  handOver()
end
if redis.call('LINDEX', KEYS[3], 0) ~= me then
  return {0, 0, 0, -1}
end
-- The first is to look when the lease is over; the others are told.
return {0, 0, 0, redis.call('PTTL', KEYS[1])}

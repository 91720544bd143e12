-- One of the two keys of a queue of waiters (queue.lua), while its slot migrates. Nothing is dropped here but a waiter that
-- leaves. A waiter is in the sorted set before it is in the list, so that one that is found in the list counts as alive.
--
-- KEYS: list, or sorted set
-- ARGV: the waiter; "beat" (sorted set), "join" (list), "leave" (either), "ahead" (list) or "alive" (sorted set); with
--       the first two for how many ms the waiter counts as alive; with the last one entries
-- Reply: OK; with "join" and "ahead" the entries before the waiter, all if it is not queued; with "alive" those of the
--        entries that are alive, in order
local me, what, keep = ARGV[1], ARGV[2], tonumber(ARGV[3])
local key = KEYS[1]
if what == 'leave' then
  if redis.call('TYPE', key).ok == 'list' then
    redis.call('LREM', key, 0, me)
  else
    redis.call('ZREM', key, me)
  end
  return {OK}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if what == 'alive' then
  local reply = {OK}
  for i = 3, #ARGV do
    if tonumber(redis.call('ZSCORE', key, ARGV[i]) or 0) > now then
      reply[#reply + 1] = ARGV[i]
    end
  end
  return reply
end
if what == 'beat' then
  redis.call('ZADD', key, now + keep, me)
end
local reply = {OK}
if what == 'join' or what == 'ahead' then
  local queued = false
  for _, entry in ipairs(redis.call('LRANGE', key, 0, -1)) do
    queued = queued or entry == me
    if queued then
      break
    end
    if string.find(entry, ' ', 1, true) then -- not one that another program added
      reply[#reply + 1] = entry
    end
  end
  if what == 'join' and not queued then
    redis.call('RPUSH', key, me)
  end
end
if keep and redis.call('PTTL', key) < keep then
  redis.call('PEXPIRE', key, keep)
end
return reply

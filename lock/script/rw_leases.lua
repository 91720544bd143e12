-- What the other keys of a readers-writer lock say, one by one, while its slot migrates.
--
-- KEYS: leases, or intents
-- ARGV: "ended" (leases that have ended), "last" (intents), or "add", a hold and for how many ms it keeps readers out
-- Reply: OK, and then the holds whose leases have ended, or for how many ms the last intent keeps readers out (-1: none)
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[1] == 'ended' then
  return {OK, unpack(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now))}
end
if ARGV[1] == 'add' then
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[2])
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
end
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if last[2] and tonumber(last[2]) > now then
  return {OK, tonumber(last[2]) - now}
end
return {OK, -1}

-- What the other keys of a readers-writer lock say, one by one, while its slot migrates.
--
-- KEYS: lock, leases, or intents
-- ARGV: "holds" (lock), "ended" (leases that have ended), "last" (intents), or "add", a hold and for how many ms it keeps
--       readers out
-- Reply: OK, and then the field adopted (-1: none) and the holds whose deadline is not in the hash; whether there is a set
--        of leases, and the holds whose leases have ended; or for how many ms the last intent keeps readers out (-1: none)
if ARGV[1] == 'holds' then
  local list = {OK, tonumber(redis.call('HGET', KEYS[1], 'adopted') or -1)}
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    local hold = string.sub(field, 3)
    if string.sub(field, 1, 2) == 'h:' and redis.call('HEXISTS', KEYS[1], 'm:' .. hold) == 0 then
      list[#list + 1] = hold
    end
  end
  return list
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[1] == 'ended' then
  return {OK, redis.call('EXISTS', KEYS[1]), unpack(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now))}
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

-- Reports what a semaphore of either kind has and who holds it.
--
-- KEYS: semaphore; if permits are leased: permits
-- ARGV: kind, channel
-- Reply: {OK, total, free}, and then for each hold: id, permits, ms left or -1; or ABSENT
if not exists(ARGV[1]) then
  return ABSENT
end
if ARGV[1] == 'semaphore' then
  local reply = {OK, number('total'), number('free')}
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'h:' then
      reply[#reply + 1] = string.sub(all[i], 3)
      reply[#reply + 1] = tonumber(all[i + 1])
      reply[#reply + 1] = -1
    end
  end
  return reply
end
local now = clock() / 1000
reclaim(KEYS[1], KEYS[2], ARGV[2], now)
local reply = {OK, number('total'), number('free')}
local all = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  reply[#reply + 1] = all[i]
  reply[#reply + 1] = 1
  reply[#reply + 1] = math.ceil(tonumber(all[i + 1]) - now)
end
return reply

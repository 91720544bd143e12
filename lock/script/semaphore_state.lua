-- Says what a semaphore of either kind has and who holds it.
--
-- KEYS: semaphore, permits, channel
-- ARGV: kind
-- Answer: {there, total, free, id, permits, ms left or -1, …}, three for each hold
if not find(ARGV[1]) then
  return {0, 0, 0}
end
if ARGV[1] == 'semaphore' then
  local list = {1, number('total'), number('free')}
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'h:' then
      list[#list + 1] = string.sub(all[i], 3)
      list[#list + 1] = tonumber(all[i + 1])
      list[#list + 1] = -1
    end
  end
  return list
end
local now = clock() / 1000
reclaim(KEYS[2], KEYS[3], now)
local list = {1, number('total'), number('free')}
local all = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  list[#list + 1] = all[i]
  list[#list + 1] = 1
  list[#list + 1] = math.ceil(tonumber(all[i + 1]) - now)
end
return list

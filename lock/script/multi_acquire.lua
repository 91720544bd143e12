-- Takes several locks for one hold, all or none. Before it stands, as the
-- function take, the script that takes one of them.
--
-- KEYS: tombstones of this hold, one for each lock; then, for each, the keys of take, the lock first
-- ARGV: how many locks; then, for each, the arguments of take, all four
-- Answer: {1, answer of take, …}; or {0, which, ttl}: another owner has that lock, for so many ms;
--         or {-1}: given back before
--
-- Everything is looked at before the first write.
local n = tonumber(ARGV[1])
local keys, args = #KEYS / n - 1, (#ARGV - 1) / n

local function part(list, from, length)
  local out = {}
  for i = 1, length do
    out[i] = list[from + i]
  end
  return out
end

for i = 1, n do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    return {-1}
  end
  local lock = KEYS[n + (i - 1) * keys + 1]
  local mine = (i - 1) * args + 1
  local holder = redis.call('HGET', lock, 'owner')
  if not holder and redis.call('EXISTS', lock) == 1 then
    return redis.error_reply('FOREIGN a key holds a hash that is not a lock')
  end
  if holder and holder ~= ARGV[mine + 3] then
    local marks, mode = redis.call('HGET', lock, 'notify') or '', string.match(ARGV[mine + 4], '[wW]')
    if mode and not string.find(marks, mode, 1, true) then
      redis.pcall('HSET', lock, 'notify', marks .. mode)
    end
    return {0, i, redis.call('PTTL', lock)}
  end
end

local answers = {1}
for i = 1, n do
  local answer = take(part(KEYS, n + (i - 1) * keys, keys), part(ARGV, 1 + (i - 1) * args, args))
  if type(answer) == 'table' and answer.err then
    return answer
  end
  answers[i + 1] = answer
end
return answers

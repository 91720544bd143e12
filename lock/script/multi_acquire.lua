
-- Acquires several mutexes for one hold, all or none. acquire.lua comes before it, as the function
-- acquire.
--
-- KEYS: the keys of acquire.lua for each lock
-- ARGV: hold, lease, then owner and flags for each lock
-- Reply: OK, then token and count of each lock; {REFUSED, which, ttl}: another owner has that lock; or
--        RELEASED; or REENTERED
--
-- All locks are checked before the first write.
local n = (#ARGV - 2) / 2
local size = #KEYS / n

local function keys(i)
  local out = {}
  for k = 1, size do
    out[k] = KEYS[(i - 1) * size + k]
  end
  return out
end

for i = 1, n do
  local lock, tombstone = unpack(keys(i))
  if redis.call('EXISTS', tombstone) == 1 then
    return RELEASED
  end
  local holder = redis.pcall('HGET', lock, 'owner')
  local reply
  if type(holder) == 'table' then
    reply = widen(lock, prefixOf(tombstone, ARGV[1]), ARGV[2 * i + 1])
    holder = not reply and redis.call('HGET', lock, 'owner')
  elseif not holder and redis.call('EXISTS', lock) == 1 then
    reply = foreign(lock)
  end
  if reply then
    if reply.err then
      return reply
    end
    return {REFUSED, i, reply[4]}
  end
  if holder and holder ~= ARGV[2 * i + 1] then
    local marks, mark = redis.call('HGET', lock, 'notify') or '', string.match(ARGV[2 * i + 2], '[wW]')
    if mark and not string.find(marks, mark, 1, true) then
      redis.pcall('HSET', lock, 'notify', marks .. mark)
    end
    return {REFUSED, i, redis.call('PTTL', lock)}
  end
  if holder and string.find(ARGV[2 * i + 2], 'n', 1, true) and redis.call('HEXISTS', lock, 'h:' .. ARGV[1]) == 0 then
    return REENTERED
  end
end

local reply = {OK}
for i = 1, n do
  local granted = acquire(keys(i), {ARGV[1], ARGV[2], ARGV[2 * i + 1], ARGV[2 * i + 2]})
  if type(granted) == 'number' then
    granted = {OK, granted, 1}
  end
  reply[2 * i], reply[2 * i + 1] = granted[2], granted[3]
end
return reply

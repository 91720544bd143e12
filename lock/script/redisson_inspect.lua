-- Reports who holds a mutex in Redisson's layout. Comes after redisson.lua.
--
-- KEYS: lock, token counter
-- Reply: {OK, owner, count, token, ms left, ''}; or ABSENT: it is free
if not isLock(KEYS[1]) then
  return ABSENT
end
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local count = tonumber(fields[i + 1])
  if count and string.sub(fields[i], 1, 2) ~= 'h:' then
    local minted = tonumber(redis.call('HGET', KEYS[1], 'h:') or 0) -- see redisson_acquire.lua
    local token = minted > 0 and minted or tonumber(redis.call('GET', KEYS[2]) or 0)
    return {OK, fields[i], count, token, redis.call('PTTL', KEYS[1]), ''}
  end
end
return redis.error_reply('FOREIGN the key holds a hash that is not a lock')

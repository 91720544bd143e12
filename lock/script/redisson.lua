-- Whether a mutex in Redisson's layout is at the key: a hash that expires. Anything else is an error.
local function isLock(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then
    return false
  end
  if kind ~= 'hash' or redis.call('PTTL', key) < 0 then
    error({err = 'FOREIGN the key holds something that is not a lock'})
  end
  return true
end

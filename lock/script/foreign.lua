-- The reply to an acquire whose key holds no lock of this package. A string that expires, or the hash of
-- Redisson's lock, is a lock of another library, and held until then: programs migrate one by one. In that hash, a field
-- uuid:thread counts the holds of the owner; programs of this package, with that layout, add a field h:<hold> for each
-- re-entry.
local function foreign(key)
  local ttl = redis.call('PTTL', key)
  local kind = redis.call('TYPE', key).ok
  local lock = kind == 'string'
  if kind == 'hash' then
    local owners, others = 0, 0
    for _, field in ipairs(redis.call('HKEYS', key)) do
      if string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') then
        owners = owners + 1
      elseif string.sub(field, 1, 2) ~= 'h:' then
        others = others + 1
      end
    end
    lock = owners == 1 and others == 0
  end
  if not lock or ttl < 0 then
    return redis.error_reply('FOREIGN the key holds something that is not a lock')
  end
  return {REFUSED, 0, 0, ttl}
end

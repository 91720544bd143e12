-- The reply to an acquire whose key holds no lock of this package. A string that expires, or the hash of
-- Redisson's lock, is a lock of another library, and held until then: programs migrate one by one. In that hash, a field
-- uuid:thread counts the holds of the owner; programs of this package, with that layout, add a field h:<hold> for each
-- re-entry.
local function foreign(key)
  local ttl = redis.call('PTTL', key)
  local kind = redis.call('TYPE', key).ok
  local lock = kind == 'string'
  if kind == 'hash' then
    -- In batches, because it may be a large hash of something else. HSCAN may return a field twice.
    local owner, other, cursor = nil, false, '0'
    repeat
      local batch = redis.call('HSCAN', key, cursor, 'COUNT', 100)
      cursor = batch[1]
      for i = 1, #batch[2], 2 do
        local field = batch[2][i]
        if string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') then
          other = other or owner and owner ~= field
          owner = field
        elseif string.sub(field, 1, 2) ~= 'h:' then
          other = true
        end
      end
    until other or cursor == '0'
    lock = owner and not other
  end
  if not lock or ttl < 0 then
    return redis.error_reply('FOREIGN the key holds something that is not a lock')
  end
  return {REFUSED, 0, 0, ttl}
end

-- The reply to an acquire whose key holds no lock of this package. A string that expires, or the hash of
-- Redisson's lock, is a lock of another library, and held until then: programs migrate one by one.
local function foreign(key)
  local ttl = redis.call('PTTL', key)
  local kind = redis.call('TYPE', key).ok
  local lock = kind == 'string'
  if kind == 'hash' and redis.call('HLEN', key) == 1 then
    lock = string.find(redis.call('HKEYS', key)[1], '^%x+%-%x+%-%x+%-%x+%-%x+:%d+$')
  end
  if not lock or ttl < 0 then
    return redis.error_reply('FOREIGN the key holds something that is not a lock')
  end
  return {REFUSED, 0, 0, ttl}
end

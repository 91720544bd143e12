-- Renews several holds of leased permits, each of them all or none; never shortens one.
--
-- KEYS: semaphore, permits and channel of each hold
-- ARGV: hold, lease and number of permits of each
-- Reply: OK, and then for each hold OK, or NOT_HELD: at least one of its permits is no longer held
local now = clock() / 1000

local function renew(pool, permits, channel, hold, lease, n)
  -- A write that changes nothing makes a replica that lags refuse. pcall, because a key of another type
  -- must not stop the renewal of the others.
  local written = redis.pcall('HDEL', pool, '')
  local size = redis.pcall('ZCARD', permits)
  if type(written) == 'table' and string.find(written.err, 'READONLY', 1, true) then
    return written
  end
  if type(written) == 'table' or type(size) == 'table' or redis.call('HGET', pool, 'kind') ~= 'permits' then
    return NOT_HELD
  end
  reclaim(pool, permits, channel, now)
  for i = 1, n do
    if not redis.call('ZSCORE', permits, hold .. '.' .. i) then
      return NOT_HELD
    end
  end
  for i = 1, n do
    redis.call('ZADD', permits, 'GT', now + lease, hold .. '.' .. i)
  end
  expire(permits)
  return OK
end

local reply = {OK}
for i = 1, #KEYS, 3 do
  local code = renew(KEYS[i], KEYS[i + 1], KEYS[i + 2], ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
  if type(code) == 'table' then
    return code
  end
  reply[#reply + 1] = code
end
return reply

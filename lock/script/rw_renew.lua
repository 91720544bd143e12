-- Renews several holds of readers-writer locks, each its own deadline only (redisson#1458, #1604). Comes after
-- rw_hold.lua.
--
-- KEYS: lock and leases of each hold
-- ARGV: hold and lease of each
-- Reply: OK, and then for each hold OK or NOT_HELD

local function renew(lock, leases, hold, lease)
  -- Only a master may say that a hold has ended: a write that changes nothing makes a replica that
  -- lags refuse, and lets a server whose memory is full continue. pcall, because a key of another type
  -- must not stop the renewal of the others.
  local written = redis.pcall('ZREM', leases, '')
  if type(written) == 'table' and string.find(written.err, 'READONLY', 1, true) then
    return written
  end
  if type(written) ~= 'table' then
    adopt(lock, leases)
  end
  local deadline = redis.pcall('ZSCORE', leases, hold)
  local exists = redis.pcall('HEXISTS', lock, 'h:' .. hold)
  if exists ~= 1 or type(deadline) ~= 'string' or tonumber(deadline) <= now then
    return NOT_HELD
  end
  redis.call('ZADD', leases, 'GT', now + lease, hold)
  local last = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')
  redis.call('PEXPIREAT', lock, last[2])
  redis.call('PEXPIREAT', leases, last[2])
  return OK
end

local reply = {OK}
for i = 1, #ARGV / 2 do
  local code = renew(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  if type(code) == 'table' then
    return code
  end
  reply[i + 1] = code
end
return reply

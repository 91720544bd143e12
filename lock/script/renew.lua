-- Renews the leases of several holds of mutexes.
--
-- KEYS: the lock of each hold
-- ARGV: field and lease of each hold
-- Reply: OK, and then for each hold OK or NOT_HELD
local reply = {OK}
for i = 1, #KEYS do
  local hold = ARGV[2 * i - 1]
  local lease = tonumber(ARGV[2 * i])
  if redis.pcall('HEXISTS', KEYS[i], hold) == 1 or redis.pcall('GET', KEYS[i]) == hold then
    if redis.call('PTTL', KEYS[i]) < lease then
      redis.call('PEXPIRE', KEYS[i], lease)
    end
    reply[i + 1] = OK
  else
    -- Only a master may say that a hold has ended: a write that changes nothing makes a replica that
    -- lags refuse. pcall, because a key of another type must not stop the renewal of the others.
    local written = redis.pcall('HDEL', KEYS[i], hold)
    if type(written) == 'table' and written.err and string.find(written.err, 'READONLY', 1, true) then
      return written
    end
    reply[i + 1] = NOT_HELD
  end
end
return reply

-- Prolongs the leases of several holds.
--
-- KEYS: locks
-- ARGV: hold and lease in ms, once for each lock
-- Answer: for each lock 1 (prolonged) or 0 (this hold has ended)
local answers = {}
for i = 1, #KEYS do
  local hold = 'h:' .. ARGV[2 * i - 1]
  local lease = tonumber(ARGV[2 * i])
  if redis.pcall('HEXISTS', KEYS[i], hold) == 1 then
    if redis.call('PTTL', KEYS[i]) < lease then
      redis.call('PEXPIRE', KEYS[i], lease)
    end
    answers[i] = 1
  else
    -- Only a master may say that a hold has ended; a replica that lags is made
    -- to refuse by a write that changes nothing. A key of another type must not
    -- stop the renewal of its neighbours, hence pcall.
    local proof = redis.pcall('HDEL', KEYS[i], hold)
    if type(proof) == 'table' and proof.err and string.find(proof.err, 'READONLY', 1, true) then
      return proof
    end
    answers[i] = 0
  end
end
return answers

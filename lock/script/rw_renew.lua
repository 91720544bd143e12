-- Prolongs the leases of several holds of readers-writer locks, each of them
-- its own deadline and nobody else's (redisson#1458, #1604).
--
-- KEYS: lock and leases, for each hold
-- ARGV: hold and lease in ms, for each hold
-- Answer: for each hold 1 (prolonged) or 0 (it has ended)
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function renew(lock, leases, hold, lease)
  local deadline = redis.pcall('ZSCORE', leases, hold)
  local there = redis.pcall('HEXISTS', lock, 'h:' .. hold)
  if there ~= 1 or type(deadline) ~= 'string' or tonumber(deadline) <= now then
    -- Only a master may say that a hold has ended; a replica that lags is made
    -- to refuse by a write that changes nothing. A key of another type must not
    -- stop the renewal of its neighbours, hence pcall.
    return redis.pcall('ZREM', leases, '')
  end
  redis.call('ZADD', leases, 'GT', now + lease, hold)
  local last = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')
  redis.call('PEXPIREAT', lock, last[2])
  redis.call('PEXPIREAT', leases, last[2])
  return 1
end

local answers = {}
for i = 1, #ARGV / 2 do
  local answer = renew(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  if type(answer) == 'table' then
    if string.find(answer.err, 'READONLY', 1, true) then
      return answer
    end
    answer = 0
  end
  answers[i] = answer
end
return answers

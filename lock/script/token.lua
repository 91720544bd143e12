-- Gives a grant its fencing token, which was minted by a request of its own because the slot of the lock migrates.
-- It was minted after the grant, so that it is greater than that of every grant before.
--
-- KEYS: lock
-- ARGV: hold, token
-- Reply: the token of the lock; or NOT_HELD
if redis.call('HEXISTS', KEYS[1], 'h:' .. ARGV[1]) == 0 then
  return NOT_HELD
end
local token = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
if token == 0 then
  redis.call('HSET', KEYS[1], 'token', ARGV[2])
  return tonumber(ARGV[2])
end
return token

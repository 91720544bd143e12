-- Gives a grant in Redisson's layout its fencing token, which was minted by a request of its own because the slot of the
-- lock migrates. If two requests of the owner have minted one, the first that arrives here counts.
--
-- KEYS: lock
-- ARGV: token
-- Reply: the token of the lock; or NOT_HELD: no grant in the hash waits for a token
local token = tonumber(redis.call('HGET', KEYS[1], 'h:') or nil)
if token == 0 then
  redis.call('HSET', KEYS[1], 'h:', ARGV[1])
  return tonumber(ARGV[1])
end
return token or NOT_HELD

-- Says who has a lock.
--
-- KEYS: lock
-- Answer: {owner, count, token, ms left}; 0: nobody
local lock = redis.call('HMGET', KEYS[1], 'owner', 'count', 'token')
if lock[1] then
  return {lock[1], tonumber(lock[2]), tonumber(lock[3] or 0), redis.call('PTTL', KEYS[1])}
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
end
return 0

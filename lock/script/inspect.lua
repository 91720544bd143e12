-- Reports who holds a mutex.
--
-- KEYS: lock
-- ARGV: channel of the lock
-- Reply: {OK, owner, count, token, ms left, metadata}; or ABSENT: it is free
local hold = plainHold(KEYS[1])
if hold then
  local prefix = string.sub(ARGV[1], 1, -#'free' - 1) .. 'tombstone:'
  if redis.call('EXISTS', prefix .. hold) == 1 then
    return ABSENT -- its SET came after its release; the next acquire removes it
  end
  return {OK, hold, 1, 0, redis.call('PTTL', KEYS[1]), ''}
end
local lock = redis.call('HMGET', KEYS[1], 'owner', 'count', 'token', 'metadata')
if lock[1] then
  return {OK, lock[1], tonumber(lock[2]), tonumber(lock[3] or 0), redis.call('PTTL', KEYS[1]), lock[4] or ''}
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
end
return ABSENT

-- Acquires a mutex in Redisson's layout for one hold. Comes after foreign.lua.
--
-- KEYS: lock, tombstone of the hold; with a fencing token: the token counter
--       while the slot of the lock migrates: the lock alone
-- ARGV: hold, lease, owner, the tombstone after flags: "n" refuses an owner that holds the lock; "f" while the slot
--       migrates, if the grant needs a fencing token
-- Reply: {OK, token, count}; {REFUSED, 0, 0, ttl}: another owner has it; RELEASED; or REENTERED
--   token  with "f": -1 if none was minted for the grant yet, 0 if it is in the counter
--
-- A request that arrives twice finds its hold: if that is the first of a new owner, whose name is that of the hold, it
-- is the field that Redisson makes, and else one of its own. To Redisson, any hash is a lock.
local hold, lease, owner = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local field = hold == owner and owner or 'h:' .. hold
local held = redis.pcall('HEXISTS', KEYS[1], owner)
if type(held) == 'table' then
  return foreign(KEYS[1])
end
-- While the slot migrates, the tombstone is read as in acquire.lua.
if redis.pcall('EXISTS', KEYS[2] or ARGV[5]) == 1 then
  return RELEASED
end
if held == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl < 0 then
    return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
  end
  return {REFUSED, 0, 0, ttl}
end
local known = redis.call('HEXISTS', KEYS[1], field) == 1
if held == 1 and not known and string.find(ARGV[4], 'n', 1, true) then
  return REENTERED
end

-- The token of a re-entry is that of the grant: Redisson mints a new one, which fences out the outer hold. While the
-- slot migrates, field h: has it, or 0 if none was minted yet: the counter may still have the token of the previous grant,
-- or already a later one if two requests of the owner have minted tokens (redisson_token.lua).
local token = 0
local minted = held == 1 and tonumber(redis.call('HGET', KEYS[1], 'h:') or nil)
if minted and minted > 0 then
  token = minted
elseif KEYS[3] then
  redis.call('HDEL', KEYS[1], 'h:')
  local counted = held == 1 and not minted
  token = counted and tonumber(redis.call('GET', KEYS[3]) or nil) or redis.call('INCR', KEYS[3])
elseif string.find(ARGV[4], 'f', 1, true) then
  if held == 0 then
    redis.call('HSET', KEYS[1], 'h:', 0)
  end
  token = -redis.call('HEXISTS', KEYS[1], 'h:')
end
if not known then
  redis.call('HINCRBY', KEYS[1], owner, 1)
  if field ~= owner then
    redis.call('HSET', KEYS[1], field, 1)
  end
end
-- Never shorter than what an outer hold was promised. A repeated request is promised a whole lease too.
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return {OK, token, tonumber(redis.call('HGET', KEYS[1], owner))}

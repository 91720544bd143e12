-- Takes a lock for one hold, or says for how long another owner has it. Comes
-- after mint.lua.
--
-- KEYS: lock, token counter, latch of this hold
-- ARGV: owner, hold, lease in ms, "1" to mint a fencing token, "1" to refuse an owner that holds the lock
-- Answer: the token, if the lock was free; else {granted, count, token, ttl}
--   granted  1: held by this hold; 0: another owner has it; -1: this hold was given back before;
--            -2: the owner holds it, and must not hold it twice
--   ttl      ms left to the other owner, negative if the key has no expiry
--
-- A request that arrives twice finds its own hold field and is not
-- counted again (redisson#7367). One that arrives after its hold was given back
-- finds the latch and takes nothing.
if redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  -- The token grows with every grant and only then: an inner hold that got a
  -- newer one would fence out the outer hold of the same owner.
  local token = 0
  if ARGV[4] == '1' then
    token = mint(KEYS[2])
  end
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'count', '1', 'token', token, 'h:' .. ARGV[2], '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return token
end

local holder = redis.call('HGET', KEYS[1], 'owner')
if holder and holder ~= ARGV[1] then
  return {0, 0, 0, redis.call('PTTL', KEYS[1])}
end

local hold = 'h:' .. ARGV[2]
local mine = holder and redis.call('HEXISTS', KEYS[1], hold) == 1
if not mine and redis.call('EXISTS', KEYS[3]) == 1 then
  return {-1, 0, 0, 0}
end
if not holder then
  return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
end
if not mine and ARGV[5] == '1' then
  return {-2, 0, 0, 0}
end

local count
if mine then
  count = tonumber(redis.call('HGET', KEYS[1], 'count'))
else
  redis.call('HSET', KEYS[1], hold, 1)
  count = redis.call('HINCRBY', KEYS[1], 'count', 1)
end
-- Never shorter than what an outer hold was promised, never added up. A request
-- that comes again is promised a whole lease too: its asker counts from then.
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return {1, count, tonumber(redis.call('HGET', KEYS[1], 'token')), 0}

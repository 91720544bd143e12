-- Takes a lock for one hold, or says for how long another owner has it. Comes
-- after a line that says what lease is standard, and, for fencing tokens, mint.lua.
--
-- KEYS: lock, tombstone of this hold, and, if a fencing token is to be minted, the token counter
-- ARGV: hold; then, if they say anything: lease in ms, owner (else the hold is its own), and letters:
--       "s" to refuse an owner that holds the lock, "w" if the asker will wait to be told that it is free
--       by PUBLISH, "W" by SPUBLISH
-- Answer: the token, or 0, if the lock was free; else {granted, count, token, ttl}
--   granted  1: held by this hold; 0: another owner has it; -1: this hold was given back before;
--            -2: the owner holds it, and must not hold it twice
--   ttl      ms left to the other owner, negative if the key has no expiry
--
-- A request that arrives twice finds its own hold field and is not
-- counted again (redisson#7367). One that arrives after its hold was given back
-- finds the tombstone and takes nothing.
local hold = 'h:' .. ARGV[1]
local owner = ARGV[3] or ARGV[1]
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  -- The token grows with every grant and only then: an inner hold that got a
  -- newer one would fence out the outer hold of the same owner.
  local token = 0
  if KEYS[3] then
    token = mint(KEYS[3])
    redis.call('HSET', KEYS[1], 'owner', owner, 'count', '1', 'token', token, hold, '1')
  else
    redis.call('HSET', KEYS[1], 'owner', owner, 'count', '1', hold, '1')
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2] or standard)
  return token
end

local what = ARGV[4] or ''
local lock = redis.call('HMGET', KEYS[1], 'owner', 'notify', hold)
if lock[1] and lock[1] ~= owner then
  local marks, mine = lock[2] or '', string.match(what, '[wW]')
  if mine and not string.find(marks, mine, 1, true) then
    -- A mark, so that only a release for which somebody waits says so. Where it cannot be
    -- written, the waiter asks by itself in the end.
    redis.pcall('HSET', KEYS[1], 'notify', marks .. mine)
  end
  return {0, 0, 0, redis.call('PTTL', KEYS[1])}
end

local mine = lock[1] and lock[3]
if not mine and redis.call('EXISTS', KEYS[2]) == 1 then
  return {-1, 0, 0, 0}
end
if not lock[1] then
  return redis.error_reply('FOREIGN the key holds a hash that is not a lock')
end
if not mine and string.find(what, 's', 1, true) then
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
local lease = tonumber(ARGV[2] or standard)
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return {1, count, tonumber(redis.call('HGET', KEYS[1], 'token') or 0), 0}

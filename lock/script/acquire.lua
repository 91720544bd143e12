-- Acquires a mutex for one hold. Comes after a line that defines defaultLease and, for fencing tokens,
-- mint.lua; and after foreign.lua and plain.lua.
--
-- KEYS: lock, tombstone of the hold; with a fencing token: the token counter
--       while the slot of the lock migrates: the lock alone
-- ARGV: hold; each of the rest may be left out with those after it: lease (defaultLease), owner (the
--       hold is its own), flags: "n" refuses an owner that holds the lock; "w" leaves a mark that asks
--       the release to PUBLISH, "W" one that asks it to SPUBLISH; the tombstone, while the slot migrates;
--       metadata that a free lock gets, empty: none
-- Reply: the token, or 0, if the lock was free; else {OK, token, count}, {REFUSED, 0, 0, ttl},
--        RELEASED, or REENTERED
--   ttl  ms left to the other owner, negative if the key has no expiry
--
-- While a slot migrates, a script may name no key that does not exist. It reads the tombstone even so, with
-- pcall: it is at the master that has no lock of this name, and not at the other.
--
-- A request that arrives twice finds its own hold and is not counted again (redisson#7367). One that
-- arrives after its hold was released finds the tombstone and acquires nothing.
local hold = 'h:' .. ARGV[1]
local owner = ARGV[3] or ARGV[1]

local function grant()
  -- The token grows with every grant and only then: a new one for an inner hold would fence out the
  -- outer hold of the same owner.
  local token = 0
  if KEYS[3] then
    token = mint(KEYS[3])
    redis.call('HSET', KEYS[1], 'owner', owner, 'count', '1', 'token', token, hold, '1')
  else
    redis.call('HSET', KEYS[1], 'owner', owner, 'count', '1', hold, '1')
  end
  if ARGV[6] and ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'metadata', ARGV[6])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2] or defaultLease)
  return token
end

-- Never shorter than what an outer hold was promised, never added up. A repeated request is promised a
-- whole lease too, since its client counts from then. What was handed over has the deadline of a place in the
-- queue instead.
local function extend(handed)
  local lease = tonumber(ARGV[2] or defaultLease)
  if handed or redis.call('PTTL', KEYS[1]) < lease then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
end

if redis.call('EXISTS', KEYS[1], KEYS[2] or KEYS[1]) == 0 and (KEYS[2] or redis.pcall('EXISTS', ARGV[5]) ~= 1) then
  return grant()
end

local flags = ARGV[4] or ''
local fields = {'owner', 'notify', hold, 'left:' .. ARGV[1]}
local lock = redis.pcall('HMGET', KEYS[1], unpack(fields))
if lock.err then
  local reply = widen(KEYS[1], prefixOf(KEYS[2], ARGV[1]), owner)
  if not reply then
    lock = redis.call('HMGET', KEYS[1], unpack(fields))
    if not lock[1] and redis.call('EXISTS', KEYS[2]) == 0 then
      return grant() -- what was there had been released
    end
  elseif plainHold(KEYS[1]) ~= owner then
    return reply
  elseif redis.pcall('EXISTS', KEYS[2] or ARGV[5]) == 1 then
    return RELEASED
  elseif owner == ARGV[1] then
    extend()
    return {OK, 0, 1}
  elseif string.find(flags, 'n', 1, true) then
    return REENTERED
  else
    return reply
  end
end
if lock[1] and lock[1] ~= owner then
  local marks, mark = lock[2] or '', string.match(flags, '[wW]')
  if mark and not string.find(marks, mark, 1, true) then
    -- Without a mark the release publishes nothing. If it cannot be written, the waiter polls.
    redis.pcall('HSET', KEYS[1], 'notify', marks .. mark)
  end
  return {REFUSED, 0, 0, redis.call('PTTL', KEYS[1])}
end

local known = lock[1] and lock[3]
if not known and (lock[4] or redis.pcall('EXISTS', KEYS[2] or ARGV[5]) == 1) then
  return RELEASED
end
if not lock[1] then
  return foreign(KEYS[1])
end
if not known and string.find(flags, 'n', 1, true) then
  return REENTERED
end

local count, handed
if known then
  count = tonumber(redis.call('HGET', KEYS[1], 'count'))
  -- A fair mutex that was handed over has no metadata and no lease yet.
  handed = not KEYS[2] and redis.call('HDEL', KEYS[1], 'granted') == 1
  if handed and ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'metadata', ARGV[6])
  end
else
  redis.call('HSET', KEYS[1], hold, 1)
  count = redis.call('HINCRBY', KEYS[1], 'count', 1)
end
extend(handed)
return {OK, tonumber(redis.call('HGET', KEYS[1], 'token') or 0), count}

-- Releases one hold of a mutex; the last one frees the lock, and publishes that if a waiter has left a
-- mark. Comes after a line that defines defaultTTL, and after plain.lua.
--
-- KEYS: lock, tombstone of the hold, old tombstones to remove;
--       while the slot of the lock migrates: the lock alone
-- ARGV: "h:" and the hold; each of the rest may be left out with those after it: TTL of the tombstone (defaultTTL),
--       owner (the hold is its own), flags: "w" (PUBLISH) or "W" (SPUBLISH) to publish without a mark;
--       the channel, while the slot migrates
-- Reply: holds that the owner has left; NOT_HELD; or NOT_OWNER
--
-- The tombstone keeps the reply, so that a request that arrives twice gets the same (redisson#4871). It
-- is left even if nothing was held: an acquire of this hold that is still on its way must not be
-- granted later. A hold that exists has no tombstone. A tombstone without a number, which was the lock itself
-- (release_plain.lua), keeps the reply 0.
--
-- While a slot migrates, a script may name no key that does not exist: the tombstone is left by a request of
-- its own (record.lua), and beside the holds of a lock that is still held, in its hash.
--
-- The first write needs no memory: a server whose memory is full refuses a script whose first write
-- does, and lets one continue that has written. It also comes before the reply that a hold does not
-- exist: a replica that lags refuses it. PUBLISH comes last, with pcall: without the right to publish
-- the lock is free even so, and waiters poll. The message is the number of subscribers
-- at this server: if they are many, they spread their requests.
local function subscribers(command, channel)
  local counted = redis.pcall('PUBSUB', command, channel)
  return string.format('%d', counted[2] or 0)
end

local field = ARGV[1]
local hold = string.sub(field, #'h:' + 1)
local ttl = ARGV[2] or defaultTTL
local lock = redis.pcall('HMGET', KEYS[1], 'count', field, 'notify')
if lock.err and not string.find(lock.err, 'WRONGTYPE', 1, true) then
  return lock
end
if lock.err and plainHold(KEYS[1]) == hold then
  lock = {'1', '1'}
elseif lock.err then
  -- Something else is at the key, as the lock of another library: this hold has ended.
  local before = KEYS[2] and redis.call('GET', KEYS[2])
  if KEYS[2] and not before then
    redis.call('SET', KEYS[2], NOT_OWNER, 'PX', ttl)
  end
  return tonumber(before or NOT_OWNER) or 0
end
if lock[1] == '1' and lock[2] then
  redis.call('DEL', KEYS[1], unpack(KEYS, 3))
  if KEYS[2] then
    redis.call('SET', KEYS[2], '0', 'PX', ttl)
  end
  if lock[3] or ARGV[4] then
    local marks = (lock[3] or '') .. (ARGV[4] or '')
    local channel = ARGV[5] or string.sub(KEYS[2], 1, -#'tombstone:' - #hold - 1) .. 'free'
    local all = string.find(marks, 'w', 1, true)
    if string.find(marks, 'W', 1, true) then
      all = type(redis.pcall('SPUBLISH', channel, subscribers('SHARDNUMSUB', channel))) == 'table' or all
    end
    if all then
      redis.pcall('PUBLISH', channel, subscribers('NUMSUB', channel))
    end
  end
  return 0
end

local left = NOT_HELD
if redis.call('HDEL', KEYS[1], field) == 1 then
  left = redis.call('HINCRBY', KEYS[1], 'count', -1)
else
  local before = KEYS[2] and redis.call('GET', KEYS[2]) or redis.call('HGET', KEYS[1], 'left:' .. hold)
  if before then
    return tonumber(before) or 0
  end
  local owner = redis.call('HGET', KEYS[1], 'owner')
  if owner and owner ~= (ARGV[3] or hold) then
    left = NOT_OWNER
  end
end
if KEYS[2] then
  redis.call('SET', KEYS[2], left, 'PX', ttl)
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'left:' .. hold, left)
end
return left

-- Takes a readers-writer lock for one hold, or says when to ask again. Comes
-- after mint.lua and rw_state.lua.
--
-- ARGV: owner, hold, lease in ms, "r" or "w", for how many ms readers are to be
--   kept away from a writer that waits without a heartbeat (0: they are not),
--   "1" to refuse an owner that has the lock in whatever way
-- Answer: {granted, count, token, ttl}
--   granted  1: held by this hold; 0: not; -1: this hold was given back before;
--            -2: the owner reads, and would wait for itself to write;
--            -3: the owner has it, and must not have it twice
--   count    holds of this kind that the owner has
--   ttl      ms until it is worth asking again, negative: no end is known
local owner, hold, lease, kind, keep = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local field = 'h:' .. hold
local mine = 'r:' .. owner

if redis.call('HEXISTS', KEYS[1], field) == 0 and redis.call('EXISTS', KEYS[4]) == 1 then
  return {-1, 0, 0, 0}
end
purge()
local mode = redis.call('HGET', KEYS[1], 'mode')
local writer = redis.call('HGET', KEYS[1], 'writer')
local reading = redis.call('HEXISTS', KEYS[1], mine) == 1
local known = redis.call('HEXISTS', KEYS[1], field) == 1

if not known and ARGV[6] == '1' and (reading or writer == owner) then
  return {-3, 0, 0, 0}
end
if not known and writer ~= owner then
  if kind == 'w' and reading then
    return {-2, 0, 0, 0}
  end
  if writer or kind == 'w' and mode then
    if kind == 'w' and keep > 0 then
      redis.call('ZADD', KEYS[3], now + keep, hold)
      if redis.call('PTTL', KEYS[3]) < keep then
        redis.call('PEXPIRE', KEYS[3], keep)
      end
    end
    return {0, 0, 0, redis.call('PTTL', KEYS[1])}
  end
  if kind == 'r' and not reading then
    local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    if last[2] then
      return {0, 0, 0, tonumber(last[2]) - now}
    end
  end
end

-- A fencing token is minted for each grant to a writer, and kept on re-entry; a
-- reader has that of the last writer, so that a resource which has seen a later
-- writer can refuse it. Where that one is forgotten, the reader's is newer.
local token
if kind == 'w' and writer then
  token = tonumber(redis.call('HGET', KEYS[1], 'token'))
elseif kind == 'w' then
  token = mint(KEYS[5])
else
  token = tonumber(redis.call('GET', KEYS[5])) or mint(KEYS[5])
end
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read', 'reads', 0, 'writes', 0)
end
if not known and kind == 'w' then
  redis.call('ZREM', KEYS[3], hold)
  redis.call('HSET', KEYS[1], 'mode', 'write', 'writer', owner, 'token', token, field, 'w ' .. owner)
  redis.call('HINCRBY', KEYS[1], 'writes', 1)
elseif not known then
  redis.call('HSET', KEYS[1], field, 'r ' .. owner)
  redis.call('HINCRBY', KEYS[1], 'reads', 1)
  redis.call('HINCRBY', KEYS[1], mine, 1)
end
-- A request that comes again is promised a whole lease from then on.
redis.call('ZADD', KEYS[2], 'GT', now + lease, hold)
expire()
if kind == 'w' then
  mine = 'writes'
end
return {1, tonumber(redis.call('HGET', KEYS[1], mine)), token, 0}

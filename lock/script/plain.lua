-- A free mutex that is acquired with SET is a string: "h:" and its hold, which is its owner too.

-- The hold that has such a mutex; nil: the key holds something else.
local function plainHold(key)
  local value = redis.pcall('GET', key)
  return type(value) == 'string' and string.match(value, '^h:(%S+)$') or nil
end

-- Makes such a mutex the hash that the other scripts know. If its hold was released before, its SET has
-- arrived late, and it is removed. Comes after foreign.lua.
--
-- prefix is that of tombstones; nil: the slot of the lock migrates, and a key that is deleted cannot be
-- written again by the same script. Returns the reply to an acquire by owner for which the key cannot be
-- changed; nil: it is a hash, or free.
local function widen(key, prefix, owner)
  local hold = plainHold(key)
  if not hold then
    return foreign(key)
  end
  if prefix and redis.call('EXISTS', prefix .. hold) == 1 then
    redis.call('DEL', key)
    return nil
  end
  -- HSET is refused because of the type only if nothing else forbids it, as a lack of memory or rights. The
  -- hold must not be lost because the script fails between DEL and HSET.
  local ttl = redis.call('PTTL', key)
  local refusal = redis.pcall('HSET', key, 'count', '1')
  if not prefix then
    refusal = redis.error_reply('TRYAGAIN a re-entry waits until the slot has migrated')
  elseif string.find(refusal.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
    redis.call('HSET', key, 'owner', hold, 'count', '1', 'h:' .. hold, '1')
    redis.call('PEXPIRE', key, math.max(ttl, 1))
    return nil
  end
  if hold == owner then
    return refusal
  end
  return {REFUSED, 0, 0, ttl}
end

-- What precedes the hold in the name of its tombstone.
local function prefixOf(tombstone, hold)
  return tombstone and string.sub(tombstone, 1, -#hold - 1)
end

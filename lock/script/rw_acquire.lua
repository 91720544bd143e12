-- Acquires a readers-writer lock for one hold. Comes after mint.lua and rw_state.lua, or, while the slot of the lock
-- migrates, rw_moving.lua.
--
-- ARGV: hold, lease, owner, flags ("n" refuses an owner that has the lock in either mode), "r" or "w",
--       for how many ms a waiting writer keeps readers out without a heartbeat (0: it does not)
-- Reply: {OK, token, count}; {REFUSED, 0, 0, ttl}; RELEASED; REENTERED; or UPGRADE
--   count    holds of this mode that the owner has
--   ttl      ms after which it is worth retrying, negative: no end is known
local hold, lease, owner, mode, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[5], tonumber(ARGV[6])
local field = 'h:' .. hold
local mine = 'r:' .. owner

if redis.call('HEXISTS', KEYS[1], field) == 0 and released() then
  return RELEASED
end
purge()
local held = heldMode()
local writer = redis.call('HGET', KEYS[1], 'writer')
local reading = redis.call('HEXISTS', KEYS[1], mine) == 1
local known = redis.call('HEXISTS', KEYS[1], field) == 1

if not known and ARGV[4] == 'n' and (reading or writer == owner) then
  return REENTERED
end
if not known and writer ~= owner then
  if mode == 'w' and reading then
    return UPGRADE
  end
  if writer or mode == 'w' and held then
    return refuse(hold, mode, keep)
  end
  if mode == 'r' and not reading then
    local left = keptOut()
    if left then
      return {REFUSED, 0, 0, left}
    end
  end
end

-- A fencing token is minted for each grant to a writer, and kept on re-entry. A reader gets that of the
-- last writer, so that a resource that has seen a later writer can refuse it, or a new one if that has
-- expired.
local token
if mode == 'w' and writer then
  token = tonumber(redis.call('HGET', KEYS[1], 'token'))
elseif not KEYS[5] then
  token = 0 -- the slot migrates: the client gets it
elseif mode == 'w' then
  token = mint(KEYS[5])
else
  token = tonumber(redis.call('GET', KEYS[5])) or mint(KEYS[5])
end
if not held then
  redis.call('HSET', KEYS[1], 'mode', 'read', 'reads', 0, 'writes', 0)
end
if not known and mode == 'w' then
  if KEYS[4] and redis.call('ZREM', KEYS[4], hold) == 1 then -- readers were not woken, and do not know when this hold ends
    publish(KEYS[6], '0')
  end
  redis.call('HSET', KEYS[1], 'mode', 'write', 'writer', owner, 'token', token, field, 'w ' .. owner)
  redis.call('HINCRBY', KEYS[1], 'writes', 1)
elseif not known then
  redis.call('HSET', KEYS[1], field, 'r ' .. owner)
  redis.call('HINCRBY', KEYS[1], 'reads', 1)
  redis.call('HINCRBY', KEYS[1], mine, 1)
end
extend(hold, lease)
if mode == 'w' then
  mine = 'writes'
end
return {OK, token, tonumber(redis.call('HGET', KEYS[1], mine))}

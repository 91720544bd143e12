-- What an acquire or a release of a readers-writer lock needs while the slot of the lock migrates, in place of rw_state.lua.
-- Comes after rw_hold.lua.
--
-- KEYS: lock
-- ARGV: those of the acquire, which are six; the tombstone of the hold; for how many ms waiting writers keep readers out,
--       negative: they do not; the field adopted (-1: none); and holds whose leases had ended, by their set. One
--       that was renewed since then has its deadline in the hash, unless a script has taken that over (adopted)
--
-- The client has looked up what is in other keys, and changes them with requests of their own. Nothing is published here:
-- waiters are subscribed at the other master. When the key was removed, the script may not name it again.
if not isLock() then
  return redis.error_reply(notLock)
end

local function count(field) return tonumber(redis.call('HGET', KEYS[1], field) or 0) end

local drop = forget

-- Updates the mode after the last writer's hold has ended.
local function downgrade()
  if count('writes') == 0 and redis.call('HGET', KEYS[1], 'mode') == 'write' then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    redis.call('HDEL', KEYS[1], 'writer')
  end
end

-- Updates the mode after holds have ended, and removes the lock if nobody holds it.
local function settle()
  downgrade()
  if count('writes') + count('reads') == 0 then
    redis.call('DEL', KEYS[1])
  end
end

-- Removes holds whose leases have ended.
local function purge()
  local current = (redis.call('HGET', KEYS[1], 'adopted') or '-1') == ARGV[9]
  for i = 10, #ARGV do
    if current and redis.call('HEXISTS', KEYS[1], 'm:' .. ARGV[i]) == 0 then
      forget(ARGV[i])
    end
  end
  for _, entry in ipairs(movedDeadlines(KEYS[1])) do
    if entry[2] <= now then
      forget(entry[1])
    end
  end
  downgrade()
end

local function released()
  return redis.call('HEXISTS', KEYS[1], 'left:' .. ARGV[1]) == 1 or redis.pcall('EXISTS', ARGV[7]) == 1
end

local function heldMode()
  return count('writes') + count('reads') > 0 and redis.call('HGET', KEYS[1], 'mode')
end

local function refuse()
  local ttl = redis.call('PTTL', KEYS[1])
  settle()
  return {REFUSED, 0, 0, ttl}
end

local function keptOut()
  local left = tonumber(ARGV[8])
  if left < 0 then
    return nil
  end
  settle()
  return left
end

local function extend(hold, lease)
  local deadline = math.max(count('m:' .. hold), now + lease)
  redis.call('HSET', KEYS[1], 'moved', 1, 'm:' .. hold, string.format('%d', deadline))
  if redis.call('PTTL', KEYS[1]) < lease then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
end

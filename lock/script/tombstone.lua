-- The reply to a request of a semaphore or latch is kept under its tombstone, so that the request has no second effect if
-- it arrives again. Comes after counted.lua.
--
-- KEYS: the hash that counts, tombstone of the request or of the hold
--
-- While the slot migrates, a script may name no key that does not exist. Then the hash is the only key, the tombstone is
-- the last argument, and its reply is kept in the hash. Its fields:
--   r:<tombstone>  the reply
--   q:<n>          when record n expires, in µs of the server's clock, and its tombstone
--   records        how many records there were so far
--   forgotten      how many of them have expired
local tombstone = KEYS[2] or table.remove(ARGV)

local records = 0

-- Removes two of the records in the hash that have expired: each request adds one at most.
local function forget()
  if records == 0 then
    return
  end
  local forgotten = tonumber(redis.call('HGET', KEYS[1], 'forgotten') or 0)
  for n = forgotten + 1, math.min(forgotten + 2, records) do
    local ends, name = string.match(redis.call('HGET', KEYS[1], 'q:' .. n) or '0 ', '^(%d+) (.*)$')
    if tonumber(ends) > clock() then
      return
    end
    redis.call('HDEL', KEYS[1], 'q:' .. n, 'r:' .. name)
    redis.call('HSET', KEYS[1], 'forgotten', n)
  end
end

-- The reply that a request got before, if it has arrived before.
local function repeated()
  local kept = redis.pcall('HMGET', KEYS[1], 'records', 'r:' .. tombstone)
  records = tonumber(kept[1] or 0)
  -- The key may be at the other master; then the client has looked there.
  local text = kept[2] or redis.pcall('GET', tombstone)
  if type(text) ~= 'string' then
    return nil
  end
  local reply = {}
  for n in string.gmatch(text, '%S+') do
    reply[#reply + 1] = tonumber(n)
  end
  return reply
end

-- Moves the records in the hash, which is about to be deleted, to tombstones.
local function keepRecords()
  local forgotten = tonumber(redis.call('HGET', KEYS[1], 'forgotten') or 0)
  for n = forgotten + 1, records do
    local ends, name = string.match(redis.call('HGET', KEYS[1], 'q:' .. n) or '0 ', '^(%d+) (.*)$')
    local left = math.ceil((tonumber(ends) - clock()) / 1000)
    if left > 0 then
      redis.call('SET', name, redis.call('HGET', KEYS[1], 'r:' .. name), 'PX', string.format('%d', left))
    end
  end
  records = 0
end

-- Keeps a reply for ttl ms, and returns it. Where there is no hash to keep it in, the request waits until the slot has
-- migrated.
local function keep(ttl, reply)
  local text = {}
  for i, n in ipairs(reply) do
    text[i] = string.format('%d', n)
  end
  text = table.concat(text, ' ')
  forget()
  if KEYS[2] then
    redis.call('SET', tombstone, text, 'PX', ttl)
  elseif redis.call('EXISTS', KEYS[1]) == 1 then
    local n = redis.call('HINCRBY', KEYS[1], 'records', 1)
    local ends = string.format('%d', clock() + tonumber(ttl) * 1000)
    redis.call('HSET', KEYS[1], 'r:' .. tombstone, text, 'q:' .. n, ends .. ' ' .. tombstone)
  else
    return redis.error_reply('TRYAGAIN the request waits until the slot has migrated')
  end
  return reply
end

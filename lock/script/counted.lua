-- Begins every script of the kinds that count: semaphores and latches.
-- KEYS[1] is the hash that counts; its field kind says what it is.

-- Whether a hash of this kind is there. The write that changes nothing makes a
-- replica that lags refuse, instead of answering from what it does not know yet.
local function find(kind)
  redis.call('HDEL', KEYS[1], '')
  local is = redis.call('HGET', KEYS[1], 'kind')
  if is == kind then
    return true
  end
  if is or redis.call('EXISTS', KEYS[1]) == 1 then
    error({err = 'FOREIGN the key holds something that is not a ' .. kind})
  end
  return false
end

local function number(field)
  return tonumber(redis.call('HGET', KEYS[1], field))
end

-- The server's clock, never the asker's: a client whose clock is fast would
-- take back what others hold.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- Wakes as many waiters as there are permits.
local function wake(channel, free)
  if free > 0 then
    redis.call('PUBLISH', channel, '+' .. string.format('%d', free))
  end
end

-- What was answered to this request before, as a list of integers, or nothing.
local function answered(tombstone)
  local text = redis.call('GET', tombstone)
  if not text then
    return nil
  end
  local list = {}
  for n in string.gmatch(text, '%S+') do
    list[#list + 1] = tonumber(n)
  end
  return list
end

local function answer(tombstone, life, list)
  local text = {}
  for i, n in ipairs(list) do
    text[i] = string.format('%d', n)
  end
  redis.call('SET', tombstone, table.concat(text, ' '), 'PX', life)
  return list
end

-- Takes back what was leased and is over.
local function reclaim(permits, channel, now)
  local n = redis.call('ZREMRANGEBYSCORE', permits, '-inf', now)
  if n > 0 then
    wake(channel, redis.call('HINCRBY', KEYS[1], 'free', n))
  end
end

-- Reports who holds a readers-writer lock. Comes after rw_state.lua; writes nothing of its own.
--
-- Reply: {OK, ms until the last hold ends, token, writers that keep readers out}, and then for each
--        hold r or w, a blank and the owner
local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local remaining = math.max(0, tonumber(last[2] or now) - now)
local reply = {
  OK,
  remaining,
  tonumber(redis.call('GET', KEYS[5]) or 0),
  redis.call('ZCOUNT', KEYS[4], '(' .. now, '+inf'),
}
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. now, '+inf')) do
  local value = redis.call('HGET', KEYS[1], 'h:' .. hold)
  if value then
    reply[#reply + 1] = value
  end
end
return reply

-- Says who has a readers-writer lock. Comes after rw_state.lua; writes nothing.
--
-- Answer: ms until the last hold ends, token, writers that keep readers away,
--   and then r or w, a blank and the owner, once for each hold
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local remaining = math.max(0, tonumber(last[2] or now) - now)
local answer = {
  remaining,
  tonumber(redis.call('GET', KEYS[5]) or 0),
  redis.call('ZCOUNT', KEYS[3], '(' .. now, '+inf'),
}
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf')) do
  local what = redis.call('HGET', KEYS[1], 'h:' .. hold)
  if what then
    answer[#answer + 1] = what
  end
end
return answer

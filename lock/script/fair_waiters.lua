-- Lists the waiters of a fair mutex, without entries in another format. Comes after fair_queue.lua; writes nothing.
--
-- Reply: OK, and then the owners, first come first
local reply = {OK}
for _, entry in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  if string.match(entry, form) and tonumber(redis.call('ZSCORE', KEYS[4], entry) or 0) > now then
    reply[#reply + 1] = string.sub(entry, string.find(entry, ' ', 1, true) + 1)
  end
end
return reply

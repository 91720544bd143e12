-- Says who waits for a fair mutex. Comes after fair_queue.lua; writes nothing.
--
-- Answer: the owners, first come first
local owners = {}
for _, entry in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  if tonumber(redis.call('ZSCORE', KEYS[4], entry) or 0) > now then
    owners[#owners + 1] = string.sub(entry, string.find(entry, ' ', 1, true) + 1)
  end
end
return owners

-- Takes a fair mutex from its owner; the first in the queue gets it. Comes after fair_queue.lua.
--
-- Reply: OK, or NOT_HELD
redis.call('LLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])
if not plainHold(KEYS[1]) and not redis.call('HGET', KEYS[1], 'owner') then
  return NOT_HELD
end
redis.call('DEL', KEYS[1])
handOver()
return OK

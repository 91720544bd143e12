-- Takes a fair mutex from whoever has it; it goes to the first in the queue.
-- Comes after fair_queue.lua.
--
-- Answer: 1, or 0 if nobody had it
redis.call('LLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])
if not redis.call('HGET', KEYS[1], 'owner') then
  return 0
end
redis.call('DEL', KEYS[1])
handOver()
return 1

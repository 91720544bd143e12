-- What the scripts of a fair semaphore share. Comes after counted.lua and queue.lua. An entry of the queue is a hold, a
-- blank, and how many permits it waits for.
--
-- KEYS: semaphore, tombstone of the request, permits, channel, queue, waiters

-- Wakes the first in the queue.
local function wakeFirst()
  local entry = first()
  if entry then
    publish(KEYS[4], string.match(entry, '^%S+'))
  end
end

-- Wakes the first in the queue if its permits are free, in place of as many waiters as there are permits: those behind
-- it have to wait for it.
function wake(_, free)
  local entry = first()
  if entry and tonumber(string.match(entry, '%d+$')) <= free then
    wakeFirst()
  end
end

-- Acquires permits of a fair semaphore if nobody waits for any, or queues the waiter, or renews its heartbeat. Comes
-- after fair_permits.lua and before permits_acquire.lua, which grants, and refuses the first in the queue.
--
-- ARGV: those of permits_acquire.lua, and for how many ms the waiter counts as alive without a heartbeat (0: it does
--       not queue)
-- Reply: that of permits_acquire.lua; {REFUSED, 0, 0, 0}: others come first; {REFUSED, 0, 0, 1}: and enough are free
--
-- The first waits until all of its permits are free, and so do all behind it, whatever they want: small requests cannot
-- starve a large one.
local wanted, keep, me = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[1] .. ' ' .. ARGV[3]
if exists('permits') and redis.call('EXISTS', KEYS[2]) == 0 and wanted <= number('total') and
    not redis.call('ZSCORE', KEYS[3], ARGV[1] .. '.1') then
  reclaim(KEYS[1], KEYS[3], KEYS[4], clock() / 1000)
  if redis.call('ZSCORE', waiters, me) then
    redis.call('ZADD', waiters, 'XX', now + keep, me) -- this request is a heartbeat
  end
  local head, free = first(), number('free')
  if (not head or head == me) and wanted <= free then
    -- The next one asks when the next lease ends: only the first knows.
    if leave(me) then
      wakeFirst()
    end
  else
    if keep > 0 then
      enqueue(me, keep)
    end
    if first() ~= me then
      wake(KEYS[4], free)
      return {REFUSED, 0, 0, wanted <= free and 1 or 0}
    end
  end
end

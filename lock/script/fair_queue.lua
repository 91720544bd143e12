-- What all scripts of a fair mutex share. Comes after mint.lua, queue.lua, and publish.lua or
-- publish_slot.lua. An entry of the queue is a hold, a
-- blank, and the owner: all that is needed to grant the lock to a waiter that is not connected.
--
-- KEYS: lock, tombstone of the hold, queue, deadlines of the waiters, token counter, channel

-- Grants the free lock to owner, with a new fencing token.
local function grant(hold, owner, lease)
  local token = mint(KEYS[5])
  redis.call('HSET', KEYS[1], 'owner', owner, 'count', 1, 'token', token, 'h:' .. hold, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
  return token
end

-- Wakes the first in the queue, so that it asks when the lease ends: only the first knows.
local function wakeFirst()
  local entry = first()
  if entry then
    publish(KEYS[6], string.sub(entry, 1, string.find(entry, ' ', 1, true) - 1))
  end
end

-- Wakes the first waiter if its next heartbeat may come only after the lease of the holder, in ms, has ended. A waiter
-- sends a heartbeat within a third of the time for which it is still kept, and learns from the reply when the lease ends.
local function wakeBefore(lease)
  local entry, kept = first()
  if entry and lease < kept / 3 then
    wakeFirst()
  end
end

-- Grants the free lock to the first in the queue and wakes it; no other client can get in between.
-- Without the right to publish the grant is found by the waiter's next request.
-- The grant lasts as long as the waiter's place in the queue would have.
local function handOver()
  local entry, left = first()
  if not entry then
    return
  end
  local blank = string.find(entry, ' ', 1, true)
  local hold = string.sub(entry, 1, blank - 1)
  redis.call('LPOP', KEYS[3])
  redis.call('ZREM', KEYS[4], entry)
  grant(hold, string.sub(entry, blank + 1), left)
  redis.call('HSET', KEYS[1], 'granted', hold)
  publish(KEYS[6], hold)
  wakeBefore(left)
end

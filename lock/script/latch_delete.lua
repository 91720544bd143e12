-- Removes a latch and wakes its waiters.
--
-- KEYS: latch, tombstone of the request
-- ARGV: TTL of the tombstone, channel
-- Reply: {OK}; or {ABSENT}
--
-- Without the hash there is no place for the reply while the slot migrates, and the request could remove the next latch
-- if it arrived again: it waits.
local before = repeated()
if before then
  return before
end
local code = ABSENT
if exists('latch') then
  if not KEYS[2] then
    return redis.error_reply('TRYAGAIN the latch is removed when the slot has migrated')
  end
  keepRecords()
  redis.call('DEL', KEYS[1])
  publish(ARGV[2], '*')
  code = OK
end
return keep(ARGV[1], {code})

-- Leaves the tombstone of a hold while the slot of its lock migrates, before the release (UNSURE) and after it
-- (its reply).
--
-- KEYS: tombstone of the hold
-- ARGV: TTL of the tombstone, reply
-- Reply: {OK}; or {OK, text}: the tombstone that was there before
local before = redis.call('GET', KEYS[1])
if not before or before == tostring(UNSURE) then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
end
return {OK, before or nil}

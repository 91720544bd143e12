-- Renews one hold of a readers-writer lock while its slot migrates. Comes after rw_moving.lua.
--
-- KEYS: lock
-- ARGV: hold, lease
-- Reply: {OK, OK or NOT_HELD}
--
-- A hold whose lease has ended is renewed unless another request has noticed that: nobody else has the lock yet.
redis.call('HDEL', KEYS[1], '') -- a replica that lags refuses
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {OK, NOT_HELD}
end
purge()
if redis.call('HEXISTS', KEYS[1], 'h:' .. ARGV[1]) == 0 then
  settle()
  return {OK, NOT_HELD}
end
extend(ARGV[1], tonumber(ARGV[2]))
return {OK, OK}

-- Takes a readers-writer lock from all who have it. Comes after rw_state.lua.
--
-- Answer: 1, or 0 if nobody had it
if redis.call('DEL', KEYS[1], KEYS[2]) == 0 then
  return 0
end
wakeReaders()
redis.call('PUBLISH', KEYS[7], '0')
return 1

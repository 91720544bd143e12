-- Takes a readers-writer lock from all owners. Comes after rw_state.lua.
--
-- Reply: OK, or NOT_HELD
if redis.call('DEL', KEYS[1], KEYS[3]) == 0 then
  return NOT_HELD
end
wakeReaders()
publish(KEYS[7], '0')
return OK

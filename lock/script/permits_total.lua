-- Reports how many leased permits there are in all. Comes after counted.lua.
--
-- KEYS: semaphore
-- Reply: {OK, total}; or ABSENT
if not exists('permits') then
  return ABSENT
end
return {OK, number('total')}

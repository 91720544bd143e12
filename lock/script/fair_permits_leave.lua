-- Removes the waiter whose permits are released, in case it has none. Comes after fair_permits.lua and before
-- permits_release.lua.
local hold = string.match(ARGV[2] or '', '^(.*)%.1$')
if hold and leave(hold .. ' ' .. (#ARGV - 1)) then
  wakeFirst()
end

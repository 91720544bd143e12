-- Renews one hold of leased permits while their slot migrates. Comes after permits_moving.lua.
--
-- KEYS: permits
-- ARGV: hold, lease, number of permits
-- Reply: {OK, OK or NOT_HELD}
redis.call('ZREM', KEYS[1], '')
for i = 1, tonumber(ARGV[3]) do
  if not held(ARGV[1] .. '.' .. i) then
    return {OK, NOT_HELD}
  end
end
lease(ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[2]))
return {OK, OK}

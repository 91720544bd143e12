-- Releases leased permits while their slot migrates. Comes after permits_moving.lua. The client leaves the tombstone
-- (record.lua), and sends the message.
--
-- KEYS: permits
-- ARGV: ids of permits
-- Reply: {OK, permits released}; one whose lease had expired does not count
local n = 0
for _, id in ipairs(ARGV) do
  if held(id) then
    n = n + 1
  end
end
for _, id in ipairs(ARGV) do
  redis.pcall('ZREM', KEYS[1], id) -- after the last one the script may not name the key
end
return {OK, n}

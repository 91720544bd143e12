-- Acquires leased permits while their slot migrates. Comes after permits_moving.lua.
--
-- KEYS: permits
-- ARGV: hold, lease, n, total, tombstone of the hold; "queued" if others wait for permits of a fair semaphore
-- Reply: that of permits_acquire.lua; and if they were not held before {OK, free, 0, 0, 1}; that of
--        fair_permits_acquire.lua if others come first and enough are free
--
-- The tombstone is read as in acquire.lua.
local hold, ms, n, total = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.pcall('EXISTS', ARGV[5]) == 1 then
  return RELEASED
end
local free = total - redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
if held(hold .. '.1') then
  for i = 1, n do
    if not held(hold .. '.' .. i) then
      return RELEASED -- some of them were released by force
    end
  end
  lease(hold, n, ms)
  return {OK, free}
end
if n > total then
  return {OUT_OF_RANGE, total}
end
if n > free then
  local first = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return {REFUSED, free, first[2] and math.ceil(tonumber(first[2]) - now) or 0}
end
if ARGV[6] then
  return {REFUSED, 0, 0, 1}
end
lease(hold, n, ms)
return {OK, free - n, 0, 0, 1}

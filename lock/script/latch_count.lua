-- Counts a latch down, once for each participant.
--
-- KEYS: latch, tombstone of the request
-- ARGV: TTL of the tombstone, participant, generation or "0" for the present one, channel
-- Reply: {OK, count, generation}: counted, now or before; {ABSENT}; or {REARMED}
local before = repeated()
if before then
  return before
end
if not exists('latch') then
  return keep(ARGV[1], {ABSENT})
end
local gen, want, count = number('gen'), tonumber(ARGV[3]), number('count')
if want ~= 0 and want ~= gen then
  if want >= number('since') and want < gen then
    return keep(ARGV[1], {OK, 0, want}) -- it opened without this participant
  end
  return keep(ARGV[1], {REARMED})
end
if count > 0 and redis.call('HSETNX', KEYS[1], 'd:' .. ARGV[2], 1) == 1 then
  count = redis.call('HINCRBY', KEYS[1], 'count', -1)
  if count == 0 then
    publish(ARGV[4], '*')
  end
end
return keep(ARGV[1], {OK, count, gen})

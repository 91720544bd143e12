-- Counts a latch down, once for each participant.
--
-- KEYS: latch, tombstone of this request, channel
-- ARGV: participant, generation or "0" for any, TTL of the tombstone in ms
-- Answer: {code, count, generation}
--   code  1: counted, now or before; -2: there is no latch; -4: there is another, the one meant was deleted
local before = answered(KEYS[2])
if before then
  return before
end
if not find('latch') then
  return answer(KEYS[2], ARGV[3], {-2, 0, 0})
end
local gen, want, count = number('gen'), tonumber(ARGV[2]), number('count')
if want ~= 0 and want ~= gen then
  if want >= number('since') and want < gen then
    return answer(KEYS[2], ARGV[3], {1, 0, want}) -- it has opened without this one
  end
  return answer(KEYS[2], ARGV[3], {-4, count, gen})
end
if count > 0 and redis.call('HSETNX', KEYS[1], 'd:' .. ARGV[1], 1) == 1 then
  count = redis.call('HINCRBY', KEYS[1], 'count', -1)
  if count == 0 then
    redis.call('PUBLISH', KEYS[3], '*')
  end
end
return answer(KEYS[2], ARGV[3], {1, count, gen})

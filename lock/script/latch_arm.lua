-- Arms a latch that is open or not there.
--
-- KEYS: latch, tombstone of this request, channel
-- ARGV: count, TTL of the tombstone in ms
-- Answer: {code, generation}; code 1: armed; 0: it is counting still
--
-- Generations are taken from the server's clock, so that those of a latch that
-- was deleted do not come again, and they grow even if the clock goes back.
-- since is the first of those that followed each other without a deletion: each
-- of them but the last is known to have opened.
local before = answered(KEYS[2])
if before then
  return before
end
local there = find('latch')
if there and number('count') > 0 then
  return answer(KEYS[2], ARGV[2], {0, number('gen')})
end
local gen = clock()
local since = gen
if there then
  gen = math.max(gen, number('gen') + 1)
  since = number('since')
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'kind', 'latch', 'count', ARGV[1],
  'gen', string.format('%d', gen), 'since', string.format('%d', since))
redis.call('PUBLISH', KEYS[3], '*')
return answer(KEYS[2], ARGV[2], {1, gen})

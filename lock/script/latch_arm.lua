-- Arms a latch that is open or absent.
--
-- KEYS: latch, tombstone of the request
-- ARGV: TTL of the tombstone, count, channel
-- Reply: {OK, generation}; or {REFUSED, generation}: it is still counting
--
-- Generations come from the server's clock, so that those of a deleted latch do not repeat, and grow
-- even if the clock goes back. since is the first of those that followed each other without a deletion:
-- each of them except the last is known to have opened.
local before = repeated()
if before then
  return before
end
local there = exists('latch')
if there and number('count') > 0 then
  return keep(ARGV[1], {REFUSED, number('gen')})
end
local gen = clock()
local since = gen
if there then
  gen = math.max(gen, number('gen') + 1)
  since = number('since')
end
-- Without DEL: replies that are kept in the hash stay there.
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 2) == 'd:' then
    redis.call('HDEL', KEYS[1], field)
  end
end
redis.call('HSET', KEYS[1], 'kind', 'latch', 'count', ARGV[2],
  'gen', string.format('%d', gen), 'since', string.format('%d', since))
publish(ARGV[3], '*')
return keep(ARGV[1], {OK, gen})

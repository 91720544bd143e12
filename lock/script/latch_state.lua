-- Says how a latch stands.
--
-- KEYS: latch
-- ARGV: generation or "0" for the present one
-- Answer: {code, count, generation}
--   code  1: open; 0: counting; -2: there is no latch; -4: there is another, the one meant was deleted
if not find('latch') then
  return {-2, 0, 0}
end
local gen, want, count = number('gen'), tonumber(ARGV[1]), number('count')
if want ~= 0 and want ~= gen then
  if want >= number('since') and want < gen then
    return {1, 0, want}
  end
  return {-4, count, gen}
end
if count == 0 then
  return {1, 0, gen}
end
return {0, count, gen}

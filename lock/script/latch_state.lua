-- Reports the state of a latch.
--
-- KEYS: latch
-- ARGV: generation or "0" for the present one
-- Reply: {OK, 0, generation}: open; {REFUSED, count, generation}: counting; ABSENT; or REARMED
if not exists('latch') then
  return ABSENT
end
local gen, want, count = number('gen'), tonumber(ARGV[1]), number('count')
if want ~= 0 and want ~= gen then
  if want >= number('since') and want < gen then
    return {OK, 0, want}
  end
  return REARMED
end
if count == 0 then
  return {OK, 0, gen}
end
return {REFUSED, count, gen}

-- Comes before the script of a guarded resource, and refuses a token older than one it has seen.
--
-- KEYS: those of the script, then the guard
-- ARGV: those of the script, then the token in decimal
--
-- Numbers are compared as text: a Lua number would round those above 2^53.
local guard, token = table.remove(KEYS), table.remove(ARGV)
local before = redis.call('GET', guard)
if before and (#before > #token or #before == #token and before > token) then
  return redis.error_reply('STALE token ' .. token .. ' after ' .. before)
end
redis.call('SET', guard, token)

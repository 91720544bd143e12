-- Sends a message to waiters, in a cluster: to the nodes of the slot (SPUBLISH, Redis 7.0), and to all nodes on a server
-- that lacks it. Without the right to publish they poll.
local function publish(channel, message)
  local sent = redis.pcall('SPUBLISH', channel, message)
  if type(sent) == 'table' then
    redis.pcall('PUBLISH', channel, message)
  end
end

-- Sends a message to all waiters for a mutex that is taken from its owner: not every one has left a mark in its hash. On
-- a server without SPUBLISH (before Redis 7.0) no waiter expects one.
local function publishBoth(channel)
  redis.pcall('PUBLISH', channel, '0')
  redis.pcall('SPUBLISH', channel, '0')
end

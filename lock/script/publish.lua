-- Sends a message to waiters. Without the right to publish they poll.
local function publish(channel, message)
  redis.pcall('PUBLISH', channel, message)
end

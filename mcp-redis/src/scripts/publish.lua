-- KEYS: the number of the last message. ARGV: the channel, the message.
-- The number lets members notice that they have missed a message.
local number = redis.call('INCR', KEYS[1])
redis.call('PUBLISH', ARGV[1], string.format('%.0f', number) .. ':' .. ARGV[2])
return number

-- KEYS: the index of the session's streams.
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local stream = KEYS[1] .. ':' .. name
  redis.call('DEL', stream, stream .. ':meta')
end
redis.call('DEL', KEYS[1])
return 1

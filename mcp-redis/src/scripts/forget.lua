-- KEYS: the index of the session's streams. ARGV: for how many milliseconds nothing more is kept of the session.
if redis.call('TYPE', KEYS[1]).ok == 'string' then
  return 1
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local stream = KEYS[1] .. ':' .. name
  redis.call('DEL', stream, stream .. ':meta')
end
redis.call('SET', KEYS[1], 'ended', 'PX', ARGV[1])
return 1

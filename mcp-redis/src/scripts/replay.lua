-- KEYS: the stream, what is known of it, the epoch. ARGV: the number after which to begin.
local known = redis.call('HMGET', KEYS[2], 'last', 'floor', 'epoch')
if not known[1] or known[3] ~= (redis.call('GET', KEYS[3]) or '') then
  return false
end
return { known[1], known[2], redis.call('XRANGE', KEYS[1], '(' .. ARGV[1] .. '-1', '+') }

-- KEYS: what was used, by its expiry; then, if there are any, the parts of it that are limited by themselves.
-- ARGV: the time, the expiry, what is used, its time to live in milliseconds, and a limit for each key.
for _, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', ARGV[1])
end
if redis.call('ZSCORE', KEYS[1], ARGV[3]) then
  return 0
end
for index, key in ipairs(KEYS) do
  if redis.call('ZCARD', key) >= tonumber(ARGV[4 + index]) then
    return -index
  end
end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, ARGV[2], ARGV[3])
  extend(key, ARGV[4])
end
return 1

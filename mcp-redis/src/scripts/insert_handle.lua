-- KEYS: the record, the names of all records by their expiry; then, unless it is anonymous, those of its owner.
-- ARGV: the time, the expiry, the name, its time to live in milliseconds, the owner, the content; the limit for all, and for
-- one owner.
for index = 2, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[index], '-inf', ARGV[1])
  if redis.call('ZCARD', KEYS[index]) >= tonumber(ARGV[5 + index]) then
    return index - 1
  end
end
redis.call('HSET', KEYS[1], 'version', 1, 'owner', ARGV[5], 'content', ARGV[6], 'expires', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
for index = 2, #KEYS do
  redis.call('ZADD', KEYS[index], ARGV[2], ARGV[3])
  extend(KEYS[index], ARGV[4])
end
return 0

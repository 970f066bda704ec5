-- KEYS: the record. ARGV: the version that was read, the next one, the record, its time to live in milliseconds.
local found = redis.call('HMGET', KEYS[1], 'version', 'record')
if not found[1] and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('NONSENSE a record without a version')
end
if (found[1] or '0') ~= ARGV[1] then
  return {0, found[1], found[2]}
end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
-- Another process may have extended its life further. A new record has none yet, which is -1.
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return {1}

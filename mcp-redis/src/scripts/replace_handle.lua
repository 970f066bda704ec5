-- KEYS: the record, the names of all records by their expiry. ARGV: the time, the expiry, the name, its time to live in
-- milliseconds, what the keys of owners begin with, the content, the version that was read.
local found = redis.call('HMGET', KEYS[1], 'version', 'owner', 'content', 'expires')
if not found[4] or tonumber(found[4]) <= tonumber(ARGV[1]) then
  return {}
end
if found[1] ~= ARGV[7] then
  return found
end
local version = redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'content', ARGV[6], 'expires', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local indexes = { KEYS[2] }
if found[2] ~= '' then
  indexes[2] = ARGV[5] .. found[2]
end
for _, key in ipairs(indexes) do
  redis.call('ZADD', key, ARGV[2], ARGV[3])
  extend(key, ARGV[4])
end
return { version }

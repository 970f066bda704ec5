-- KEYS: the record, the names of all records by their expiry. ARGV: the name, what the keys of owners begin with.
local found = redis.call('HMGET', KEYS[1], 'version', 'owner', 'content', 'expires')
if not found[1] then
  return {}
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
if found[2] and found[2] ~= '' then
  redis.call('ZREM', ARGV[2] .. found[2], ARGV[1])
end
return found

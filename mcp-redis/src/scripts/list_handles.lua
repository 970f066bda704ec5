-- KEYS: the names of an owner's records by their expiry. ARGV: the time, what the keys of records begin with.
local records = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf')) do
  local found = redis.call('HMGET', ARGV[2] .. name, 'version', 'owner', 'content', 'expires')
  if found[1] then
    records[#records + 1] = { name, unpack(found) }
  end
end
return records

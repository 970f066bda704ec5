-- KEYS: the record. ARGV: its time to live in milliseconds.
-- `PEXPIRE` with `GT` does not tell whether there is a record.
local remaining = redis.call('PTTL', KEYS[1])
if remaining == -2 then
  return 0
end
-- Another process may have extended its life further.
if remaining < tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 1

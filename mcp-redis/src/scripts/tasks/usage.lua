sweep()
local known = redis.call('HMGET', counts, 'kept', 'unfinished', 'bytes', 'passed')
ensure_group()
local claimed = redis.call('XPENDING', queue, group)[1] - tonumber(known[4] or '0')
local queued = redis.call('XLEN', queue) - claimed
return { tonumber(known[1] or '0'), tonumber(known[2] or '0'), queued, claimed, tonumber(known[3] or '0') }


-- ARGV: the id, the owner ('' if there is none), the tool, whether it is finished, the content, the remaining time in
-- milliseconds, the time of expiry for clients, a nonce, the token of its run ('' if it begins queued), the worker; the limits: unfinished per owner,
-- per tool and in total, kept per owner and in total, bytes in total and per owner.
local id, owner, tool, finished, content = ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1', ARGV[6]
local remaining, expires, nonce, token, worker = tonumber(ARGV[7]), ARGV[8], ARGV[9], ARGV[10], ARGV[11]
sweep()
if redis.call('HEXISTS', index, id) == 1 then
  -- The response to the first attempt was lost, or the id is taken.
  return { redis.call('HGET', record_key(id), 'first') == nonce and 'inserted' or 'exists' }
end

local limits = {}
if not finished then
  if owner ~= '' then
    table.insert(limits, { 'UnfinishedPerOwner', 'owner:' .. owner, ARGV[12] })
  end
  table.insert(limits, { 'UnfinishedPerTool', 'tool:' .. tool, ARGV[13] })
  table.insert(limits, { 'Unfinished', 'unfinished', ARGV[14] })
end
if owner ~= '' then
  table.insert(limits, { 'KeptPerOwner', 'kept:' .. owner, ARGV[15] })
end
table.insert(limits, { 'Kept', 'kept', ARGV[16] })
for _, limit in ipairs(limits) do
  if tonumber(redis.call('HGET', counts, limit[2]) or '0') >= tonumber(limit[3]) then
    return { 'full', limit[1] }
  end
end
local limit = exceeded(owner, #content, ARGV[17], ARGV[18])
if limit then
  return { 'full', limit }
end

local dies = now + remaining
local task = { owner = owner, tool = tool, finished = finished, bytes = #content, entry = '', held = '', dies = dies, late = dies - remaining / 10 }
local run = 0
if not finished then
  join_queue(id, task)
  if token ~= '' then
    run, task.held, task.worker = 1, token, worker
    redis.call('XCLAIM', queue, group, consumer, 0, task.entry, 'FORCE', 'JUSTID')
  end
  count_unfinished(task, 1)
end
count('kept', 1)
count_bytes(owner, #content)
redis.call('ZADD', expiry, dies, id)
write_index(id, task)
local record = record_key(id)
redis.call('HSET', record, 'version', 1, 'run', run, 'expires', expires, 'content', content, 'first', nonce, 'last', nonce)
redis.call('PEXPIREAT', record, dies)
local keys = { queue, expiry, index, counts }
local number = redis.call('HINCRBY', counts, 'number', 1)
if owner ~= '' then
  count('kept:' .. owner, 1)
  redis.call('ZADD', owner_key(owner), number, id)
  table.insert(keys, owner_key(owner))
end

-- All keys go by themselves, a day after the last task. Until then a script sweeps.
local gone = dies + 86400000
for _, key in ipairs(keys) do
  local left = redis.call('PTTL', key)
  if left == -1 or (left >= 0 and now + left < gone) then
    redis.call('PEXPIREAT', key, gone)
  end
end
if not finished and token == '' then
  publish('queued')
end
return { 'inserted' }

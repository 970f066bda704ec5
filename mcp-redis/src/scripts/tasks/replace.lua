
-- ARGV: the id, the version that was read, the next one, the content, whether it is finished, what happens to the queue, the token
-- of the ticket ('' without one), a nonce, the limits of bytes in total and per owner, and by how many a final write may exceed them.
local id, read, next_version, content, finished = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1'
local action, token, nonce = ARGV[7], ARGV[8], ARGV[9]
local task = read_index(id)
if not task then
  return { 'gone' }
end
local record = record_key(id)
local known = redis.call('HMGET', record, 'version', 'last')
if not known[1] then
  return { 'gone' }
end
if known[2] == nonce then
  -- The response to the first attempt was lost.
  return { 'replaced' }
end
if token ~= '' and task.held ~= token then
  return { 'lost' }
end
if known[1] ~= read or task.finished then
  return { 'conflict', fields(id, task) }
end
local more = #content - task.bytes
local limit = exceeded(task.owner, more, ARGV[10], ARGV[11])
if limit and not (finished and more <= tonumber(ARGV[12])) then
  return { 'full', limit }
end

redis.call('HSET', record, 'version', next_version, 'content', content, 'last', nonce)
count_bytes(task.owner, more)
task.bytes = #content
local is_queued = false
if finished then
  count_unfinished(task, -1)
  task.finished = true
  leave_queue(task)
elseif action == 'done' then
  leave_queue(task)
elseif action == 'enqueue' and task.entry == '' then
  join_queue(id, task)
  is_queued = true
end
write_index(id, task)
publish(id)
if is_queued then
  publish('queued')
end
return { 'replaced' }

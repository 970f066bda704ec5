
-- ARGV: the worker, the token of the run, the lease in milliseconds, whether the worker has only the tools that follow, their names.
local worker, token, lease, has_all = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5] == '0'
local tools = {}
for position = 6, #ARGV do
  tools[ARGV[position]] = true
end
sweep()
ensure_group()

-- Whether the worker may claim a task: it has the tool, or the task is about to expire.
local function is_meant(task)
  return has_all or tools[task.tool] or now >= math.max(task.late or 0, task.dies - lease)
end

-- Leaves an entry to other workers: it stays pending as if its lease had expired, so that they find it.
local function pass_over(id, task, is_new)
  redis.call('XCLAIM', queue, group, consumer, 0, task.entry, 'IDLE', 86400000, 'JUSTID')
  if is_new then
    task.passed = true
    count_passed(task, 1)
    write_index(id, task)
  end
  return nil
end

-- Claims the task of an entry. `is_new` if the entry is delivered for the first time. Returns the fields of the task, and whether
-- it was taken over.
local function take(entry, is_new)
  local id = entry[2] and entry[2][2]
  local task = id and read_index(id)
  if not task or task.entry ~= entry[1] then
    -- Nothing refers to it.
    redis.call('XACK', queue, group, entry[1])
    redis.call('XDEL', queue, entry[1])
    return nil
  end
  if is_new and task.held ~= '' then
    -- It was inserted by the worker that runs it, and stays pending.
    return nil
  end
  if not is_meant(task) then
    return pass_over(id, task, is_new)
  end
  redis.call('HINCRBY', record_key(id), 'run', 1)
  local found = fields(id, task)
  if not found then
    -- Only a part of it is left, for example as Redis evicts keys.
    remove(id, task)
    return nil
  end
  -- A worker that has released it holds it no longer.
  table.insert(found, task.held ~= '' and 1 or 0)
  pass_no_more(task)
  task.held, task.worker = token, worker
  write_index(id, task)
  return found
end

-- Looks at the next ten leases or so. The group keeps no order by age, so the position is kept for the next call.
local cursor = redis.call('HGET', counts, 'cursor') or '0-0'
local function scan()
  local found = redis.call('XAUTOCLAIM', queue, group, consumer, lease, cursor, 'COUNT', 1)
  cursor = found[1]
  -- Without tasks there are no counts, which would not expire.
  if cursor == '0-0' and redis.call('EXISTS', counts) == 1 then
    redis.call('HSET', counts, 'scanned', now)
  end
  local entry = found[2][1]
  return entry and entry[1] and take(entry, false)
end

local function finish(found)
  if cursor == '0-0' then
    redis.call('HDEL', counts, 'cursor')
  else
    redis.call('HSET', counts, 'cursor', cursor)
  end
  return found
end

local found = scan()
if found then
  return finish(found)
end
local delivered = 0
while true do
  -- Those that are delivered in vain began with their worker, or are passed over.
  if delivered == 1000 then
    -- Those behind them have not been looked at.
    publish('queued')
    return finish({})
  end
  delivered = delivered + 1
  local new = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', queue, '>')
  if not new then
    break
  end
  found = take(new[1][2][1], true)
  if found then
    return finish(found)
  end
end
-- With nothing else to do, all leases are looked at, but not more often than they matter, and not too many at once: the next call
-- goes on. Tasks that other workers passed over can be claimed at any time.
local function is_passed_over()
  if redis.call('HEXISTS', counts, 'passed') == 0 then
    return false
  end
  for tool in pairs(tools) do
    if redis.call('HEXISTS', counts, 'passed:' .. tool) == 1 then
      return true
    end
  end
  return has_all
end
local is_due = now - tonumber(redis.call('HGET', counts, 'scanned') or '0') >= lease / 4
if not is_due and not is_passed_over() then
  return finish({})
end
local first = cursor
for _ = 1, 100 do
  found = scan()
  if found then
    return finish(found)
  end
  if cursor == '0-0' and first == '0-0' then
    break
  end
  -- It began in the middle: the rest is looked at, too.
  if cursor == '0-0' then
    first = cursor
  end
end
return finish({})

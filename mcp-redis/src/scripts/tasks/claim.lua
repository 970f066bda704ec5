
-- ARGV: the worker, the token of the run, the lease in milliseconds.
local worker, token, lease = ARGV[2], ARGV[3], ARGV[4]
sweep()
ensure_group()

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
  redis.call('HINCRBY', record_key(id), 'run', 1)
  local found = fields(id, task)
  if not found then
    -- Only a part of it is left, for example as Redis evicts keys.
    remove(id, task)
    return nil
  end
  -- A worker that has released it holds it no longer.
  table.insert(found, task.held ~= '' and 1 or 0)
  task.held, task.worker = token, worker
  write_index(id, task)
  return found
end

-- Looks at the next ten leases or so. The group keeps no order by age, so the position is kept for the next call.
local cursor = redis.call('HGET', counts, 'cursor') or '0-0'
local function scan()
  local found = redis.call('XAUTOCLAIM', queue, group, consumer, lease, cursor, 'COUNT', 1)
  cursor = found[1]
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
for _ = 1, 100 do
  local new = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', queue, '>')
  if not new then
    break
  end
  found = take(new[1][2][1], true)
  if found then
    return finish(found)
  end
end
-- With nothing else to do, all leases are looked at.
local rounds = 0
for _ = 1, 500 do
  if cursor == '0-0' then
    rounds = rounds + 1
    if rounds > 2 then
      break
    end
  end
  found = scan()
  if found then
    return finish(found)
  end
end
return finish({})

-- What the scripts of tasks begin with.
--
-- KEYS: the queue, the times of expiry, the index, the counts. ARGV: the beginning of the other keys, which have the same hash
-- tag and therefore the same slot; what follows is the script's own, and begins with the id of a task if it is about one.
--
-- Times are those of this server, as the clocks of its clients differ.
local queue, expiry, index, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base = ARGV[1]
local group, consumer = 'workers', 'worker'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function record_key(id)
  return base .. 'task:' .. id
end

local function owner_key(owner)
  return base .. 'tasks:owner:' .. owner
end

local function publish(message)
  redis.call('PUBLISH', base .. 'tasks:changes', message)
end

local function count(name, difference)
  -- Negated, it would be a number that Redis does not take for one.
  if difference == 0 then
    return
  end
  if redis.call('HINCRBY', counts, name, difference) <= 0 and difference < 0 then
    redis.call('HDEL', counts, name)
  end
end

-- Counts the bytes of a content that grows or shrinks.
local function count_bytes(owner, difference)
  count('bytes', difference)
  if owner ~= '' then
    count('bytes:' .. owner, difference)
  end
end

-- The limit that a content exceeds which grows by a number of bytes, if it does.
local function exceeded(owner, difference, max, max_of_owner)
  local function is_over(name, limit)
    return difference > 0 and tonumber(redis.call('HGET', counts, name) or '0') + difference > tonumber(limit)
  end
  if owner ~= '' and is_over('bytes:' .. owner, max_of_owner) then
    return 'BytesPerOwner'
  end
  return is_over('bytes', max) and 'Bytes'
end

-- Changes the numbers of tasks that are not finished.
local function count_unfinished(task, difference)
  count('unfinished', difference)
  count('tool:' .. task.tool, difference)
  if task.owner ~= '' then
    count('owner:' .. task.owner, difference)
  end
end

-- The stream exists only with its group, unless it was tampered with.
local function ensure_group()
  if redis.call('EXISTS', queue) == 0 then
    redis.call('XGROUP', 'CREATE', queue, group, '0', 'MKSTREAM')
    local left = redis.call('PTTL', expiry)
    redis.call('PEXPIRE', queue, left > 0 and left or 86400000)
  end
end

local function write_index(id, task)
  redis.call('HSET', index, id, cmsgpack.pack(task))
end

-- Changes the numbers of tasks that were passed over.
local function count_passed(task, difference)
  count('passed', difference)
  count('passed:' .. task.tool, difference)
end

-- A task that was passed over by a worker without its tool is pending, and is not claimed.
local function pass_no_more(task)
  if task.passed then
    count_passed(task, -1)
    task.passed = nil
  end
end

local function leave_queue(task)
  if task.entry ~= '' then
    pass_no_more(task)
    redis.call('XACK', queue, group, task.entry)
    redis.call('XDEL', queue, task.entry)
    task.entry, task.held = '', ''
  end
end

local function join_queue(id, task)
  ensure_group()
  task.entry, task.held = redis.call('XADD', queue, '*', 'id', id), ''
end

-- Removes everything of a task.
local function remove(id, task)
  leave_queue(task)
  count('kept', -1)
  count_bytes(task.owner, -task.bytes)
  if not task.finished then
    count_unfinished(task, -1)
  end
  if task.owner ~= '' then
    count('kept:' .. task.owner, -1)
    redis.call('ZREM', owner_key(task.owner), id)
  end
  redis.call('ZREM', expiry, id)
  redis.call('HDEL', index, id)
  redis.call('DEL', record_key(id))
end

-- Removes tasks that have expired, a limited number of them as this server does nothing else meanwhile.
local function sweep()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, 200)) do
    local packed = redis.call('HGET', index, id)
    if packed then
      remove(id, cmsgpack.unpack(packed))
    else
      redis.call('ZREM', expiry, id)
    end
  end
end

-- What the index has of a task, unless it has expired.
local function read_index(id)
  local packed = redis.call('HGET', index, id)
  local task = packed and cmsgpack.unpack(packed)
  if task and task.dies > now then
    return task
  end
  return nil
end

-- The fields of a task as a client expects them; nil if the record is gone.
local function fields(id, task)
  local record = redis.call('HMGET', record_key(id), 'version', 'run', 'expires', 'content')
  if not (record[1] and record[2] and record[3] and record[4]) then
    return nil
  end
  return { id, record[1], record[2], task.owner, task.tool, record[3], task.finished and 1 or 0, record[4] }
end

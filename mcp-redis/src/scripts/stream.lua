-- What the scripts that write to a stream begin with.
--
-- KEYS: the index of the session's streams, the epoch. ARGV: the stream, its time to live in milliseconds, how many
-- streams a session may have; what follows is the script's own.
--
-- Numbers of events are compared as texts of 20 digits, because Lua's numbers end at 2^53; the empty text is less than
-- all of them. `last` is the last number that was used, `floor` the last one that is lost: whatever is greater is here, and
-- some of what is less may be.
local index = KEYS[1]
if redis.call('TYPE', index).ok == 'string' then
  -- The session has ended, and whoever sends this does not know yet.
  return 0
end
local epoch = redis.call('GET', KEYS[2]) or ''
local stream = index .. ':' .. ARGV[1]
local meta = stream .. ':meta'
local known = redis.call('HMGET', meta, 'last', 'floor', 'bytes', 'epoch')
local last, floor, bytes = known[1] or '', known[2] or '', tonumber(known[3] or '0')
local length = redis.call('XLEN', stream)

-- Removes all events, if there are any: a script that has deleted something may go on when there is no memory left.
local function clear()
  if length > 0 then
    redis.call('DEL', stream)
  end
  length, bytes = 0, 0
end

if last == '' then
  clear()
  floor = ''
elseif known[4] ~= epoch or length == 0 then
  clear()
  floor = last
end

-- All that there was up to a number is lost.
local function lose(number)
  clear()
  floor = number
  if number > last then
    last = number
  end
end

-- Writes down what is known of the stream, and which streams the session has.
local function keep()
  redis.call('HSET', meta, 'last', last, 'floor', floor, 'bytes', bytes, 'epoch', epoch)
  local time = redis.call('TIME')
  redis.call('ZADD', index, time[1] * 1000000 + time[2], ARGV[1])
  for _ = 1, redis.call('ZCARD', index) - tonumber(ARGV[3]) do
    local oldest = index .. ':' .. redis.call('ZPOPMIN', index)[1]
    redis.call('DEL', oldest, oldest .. ':meta')
  end
  for _, key in ipairs({ index, stream, meta }) do
    redis.call('PEXPIRE', key, ARGV[2])
  end
end

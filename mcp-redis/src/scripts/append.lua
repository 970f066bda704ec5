
-- ARGV: the number with 20 digits and as it is; the number before it ('' if there is none, '?' if nobody knows), and the
-- greatest that it can be; the message; how many events and bytes a stream may have.
local number, id, previous, below, message = ARGV[4], ARGV[5] .. '-1', ARGV[6], ARGV[7], ARGV[8]
local max_events, max_bytes = tonumber(ARGV[9]), tonumber(ARGV[10])
if number <= last then
  -- It has been written before, or comes from a process that does not know that another one goes on with the stream.
  local same = redis.call('XRANGE', stream, id, id)[1]
  if number > floor and not (same and same[2][2] == message) then
    floor = number
    keep()
  end
  return 0
end
if previous == '?' then
  if last == '' then
    lose(below)
  end
elseif previous > last then
  lose(previous)
end
redis.call('XADD', stream, id, 'm', message)
last, length, bytes = number, length + 1, bytes + #message
while length > 0 and (length > max_events or bytes > max_bytes) do
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', stream, oldest[1])
  local digits = string.match(oldest[1], '^%d+')
  local gone = string.rep('0', 20 - #digits) .. digits
  if gone > floor then
    floor = gone
  end
  length, bytes = length - 1, bytes - #oldest[2][2]
end
keep()
return 1

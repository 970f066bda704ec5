
-- ARGV: the owner, the number after which to begin, how many.
local key, after, max = owner_key(ARGV[2]), ARGV[3], tonumber(ARGV[4])
sweep()
local page, last = {}, ''
while true do
  local found = redis.call('ZRANGEBYSCORE', key, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
  if #found == 0 then
    return { '', page }
  end
  for position = 1, #found, 2 do
    local id = found[position]
    local task = read_index(id)
    local record = task and fields(id, task)
    if record then
      if #page == max then
        return { last, page }
      end
      table.insert(page, record)
      last = found[position + 1]
    end
    after = found[position + 1]
  end
end


-- ARGV: the owner, the number after which to begin, how many, and after how many bytes a page ends.
local key, after, max, max_bytes = owner_key(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
sweep()
local page, last, bytes = {}, '', 0
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
      if #page == max or bytes > max_bytes then
        return { last, page }
      end
      table.insert(page, record)
      bytes = bytes + task.bytes
      last = found[position + 1]
    end
    after = found[position + 1]
  end
end

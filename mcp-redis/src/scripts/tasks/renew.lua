
-- ARGV: the id, the token of the run.
local id = ARGV[2]
local task = read_index(id)
if not task or task.held ~= ARGV[3] then
  return 0
end
ensure_group()
redis.call('XCLAIM', queue, group, consumer, 0, task.entry, 'FORCE', 'JUSTID')
return 1

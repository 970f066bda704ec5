
-- ARGV: the id, the token of the run.
local id = ARGV[2]
local task = read_index(id)
if not task or task.held ~= ARGV[3] then
  return 0
end
leave_queue(task)
join_queue(id, task)
write_index(id, task)
publish('queued')
return 1

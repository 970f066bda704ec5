
-- ARGV: the id.
local task = read_index(ARGV[2])
return task and fields(ARGV[2], task) or {}

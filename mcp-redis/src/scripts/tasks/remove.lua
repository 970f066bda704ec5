
-- ARGV: the id.
local task = read_index(ARGV[2])
if not task then
  return 0
end
remove(ARGV[2], task)
publish(ARGV[2])
return 1

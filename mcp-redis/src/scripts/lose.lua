
-- ARGV: the greatest number that was lost, with 20 digits.
if ARGV[4] <= floor then
  return 0
end
lose(ARGV[4] > last and ARGV[4] or last)
keep()
return 1

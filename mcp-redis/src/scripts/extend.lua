-- Lets a key live for at least so many milliseconds. Another process may have extended its life further.
local function extend(key, milliseconds)
  if redis.call('PTTL', key) < tonumber(milliseconds) then
    redis.call('PEXPIRE', key, milliseconds)
  end
end


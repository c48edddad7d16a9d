-- Stops each thread after a number of responses: 100, or the first argument after the URL.
-- The run ends when all threads have stopped.
--
--   onrush -s stop.lua http://127.0.0.1:8080/ 500

local left = 100

function init(args)
  left = tonumber(args[1]) or left
end

function response()
  left = left - 1
  if left == 0 then
    wrk.thread:stop()
  end
end

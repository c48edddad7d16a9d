-- Makes every request another one: the path and a header count up.
-- Each thread counts for itself, so its number is part of both.
--
--   onrush -s counter.lua http://127.0.0.1:8080/echo

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

local count = 0

function request()
  count = count + 1
  wrk.headers["X-Request"] = number .. "-" .. count
  return wrk.format(nil, wrk.path .. "?item=" .. number .. "." .. count)
end

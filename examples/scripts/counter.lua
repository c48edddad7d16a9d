-- Makes every request different: its path and a header contain a counter.
-- Each thread has its own counter, so the number of the thread is part of both.
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

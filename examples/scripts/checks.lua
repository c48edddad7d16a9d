-- Checks every response: status, type and body must be right, and it must arrive within a second.
-- The first wrong response is printed; if there was any, the exit code is 1.
--
--   onrush -s checks.lua http://127.0.0.1:8080/

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init()
  wrong = 0
end

local function problem(status, headers, body, latency_us)
  if status ~= 200 then
    return "status " .. status
  elseif headers["Content-Type"] ~= "text/plain" then
    return "type " .. tostring(headers["Content-Type"])
  elseif not body:find("Hello", 1, true) then
    return "a body of " .. #body .. " bytes that does not say Hello"
  elseif latency_us and latency_us > 1e6 then
    return "a response after " .. latency_us / 1e6 .. " s"
  end
end

function response(status, headers, body, latency_us)
  local what = problem(status, headers, body, latency_us)
  if what then
    wrong = wrong + 1
    if wrong == 1 then
      wrk.log("expected a greeting, got " .. what)
    end
  end
end

function done(summary)
  local total = 0
  for _, thread in ipairs(threads) do
    total = total + thread:get("wrong")
  end
  print(string.format("%d of %d responses were wrong", total, summary.requests))
  if total > 0 then
    os.exit(1)
  end
end

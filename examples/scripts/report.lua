-- Counts in every thread and prints the counts at the end, below the usual report.
-- Threads share nothing: what setup passes to a thread and what done gets from it are copies.
--
--   onrush -t 2 -s report.lua http://127.0.0.1:8080/status/404

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("number", #threads)
end

function init()
  requests = 0
  statuses = {}
end

function request()
  requests = requests + 1
  return wrk.request()
end

function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

function done(summary, latency)
  print("Threads:")
  for _, thread in ipairs(threads) do
    print(string.format("  %d sent %d requests", thread:get("number"), thread:get("requests")))
    for status, count in pairs(thread:get("statuses")) do
      print(string.format("    %d came back %d times", status, count))
    end
  end
  print(string.format("%d requests in %.2f s, %d bytes", summary.requests, summary.duration / 1e6, summary.bytes))
  -- Without a response there is no latency.
  for _, p in ipairs(#latency > 0 and { 50, 90, 99, 99.9 } or {}) do
    print(string.format("  %g%% within %.3f ms", p, latency:percentile(p) / 1e3))
  end
  for what, count in pairs(summary.errors) do
    if count > 0 then
      print(string.format("  %d errors: %s", count, what))
    end
  end
end
